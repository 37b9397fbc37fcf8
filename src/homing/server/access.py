"""Who asks, and what they may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from homing.app import Homing
from homing.errors import Forbidden
from homing.operations.operation import SCOPES, Scope

if TYPE_CHECKING:
    from homing.server.service import Service


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: `app` is the user's own, `service` what all users share."""

    user: str
    scope: Scope
    app: Homing
    service: Service

    def may(self, scope: Scope) -> bool:
        """Whether the token reaches that far."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


def _requiring(scope: Scope) -> Callable[[Request], Awaitable[Caller]]:
    async def caller(request: Request) -> Caller:
        found: Caller = request.state.caller
        if not found.may(scope):
            raise Forbidden(
                f"this token may {found.scope}, and this needs {scope}; create one with "
                f"`homing tokens create --scope {scope}`",
                details={"scope": found.scope, "needed": scope},
            )
        return found

    return caller


Reading = Annotated[Caller, Depends(_requiring("read"))]
Writing = Annotated[Caller, Depends(_requiring("write"))]
Administering = Annotated[Caller, Depends(_requiring("admin"))]
