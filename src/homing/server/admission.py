"""Who may come in: every request gets its caller here, or is refused."""

from __future__ import annotations

from contextlib import ExitStack

from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from homing.server.access import CALLER, Caller
from homing.server.service import Service
from homing.server.tenants import OWNER

PUBLIC = ("/", "/health", "/openapi.json")


class Admission:
    """Finds out who asks, and hands in the app of that user."""

    def __init__(self, app: ASGIApp, *, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        user = OWNER
        tenants = self._service.tenants
        with ExitStack() as held:
            lease = tenants.lease(user)
            if tenants.is_open(user):
                app = held.enter_context(lease)
            else:
                app = await run_in_threadpool(held.enter_context, lease)
            caller = Caller(user, "admin", app, self._service)
            scope.setdefault("state", {})["caller"] = caller
            CALLER.set(caller)
            await self._app(scope, receive, send)
