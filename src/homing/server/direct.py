"""The short way to an answer: a request with nothing wrong about it passes by the framework.

The framework describes every route and says what is wrong with a request; for one that is as described it takes longer
than many an operation itself. So an operation is first tried here, and whatever does not fit goes on to its route.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import partial
from typing import Any

from pydantic import BaseModel, RootModel, ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from homing.errors import HomingError
from homing.operations import OPERATIONS, Operation
from homing.server.access import Caller
from homing.server.addresses import Methods
from homing.server.binding import answer_operation
from homing.server.failures import failed
from homing.server.limits import first, whole
from homing.server.routes.health import health_of
from homing.server.service import Service

Answer = Callable[[Caller | None, Mapping[str, str], bytes], tuple[int, BaseModel] | None]
"""The status and the answer to a caller, the names in the path and a body; None where the request does not fit."""
JSON = b"application/json"


class Direct:
    """Answers operations and `/health`, each in one step beside the event loop; everything else is handed on."""

    def __init__(self, app: ASGIApp, *, service: Service, methods: Methods) -> None:
        self._app = app
        self._methods = methods
        self._threads = service.threads
        self._answers: dict[str, Answer] = {name: _answering(one) for name, one in OPERATIONS.items()}
        self._answers["health"] = lambda caller, names, body: health_of(service, caller)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._methods.route(scope["path"], scope["method"]) if scope["type"] == "http" else None
        answer = None if found is None or scope["query_string"] else self._answers.get(found.route.name)
        if found is None or answer is None or not _has_json(scope):
            await self._app(scope, receive, send)
            return
        # Whatever becomes of it, it is counted under this.
        scope["route"] = found.route
        # What reads bodies hands them in whole.
        message: Message = whole(b"") if scope["method"] in ("GET", "DELETE") else await receive()
        caller = scope.get("state", {}).get("caller")
        work = partial(copy_context().run, _made, answer, caller, found.names, message.get("body", b""))
        try:
            made = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except HomingError as error:
            # Here, and not where everything else is caught: pages of other origins read what is said inside of CORS.
            await failed(error)(scope, receive, send)
            return
        if made is None:
            await self._app(scope, first(message, receive), send)
            return
        status, content = made
        headers = [(b"content-type", JSON), (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})


def _made(answer: Answer, caller: Caller | None, names: Mapping[str, str], body: bytes) -> tuple[int, bytes] | None:
    found = answer(caller, names, body)
    return None if found is None else (found[0], found[1].model_dump_json(by_alias=True).encode())


def _has_json(scope: Scope) -> bool:
    """Whether a body, where there is one, says that it is JSON and no more."""
    if scope["method"] in ("GET", "DELETE"):
        return True
    return any(name == b"content-type" and value == JSON for name, value in scope["headers"])


def _answering(bound: Operation) -> Answer:
    status = 202 if bound.job is not None else bound.status
    is_root = issubclass(bound.input, RootModel)

    def answer(caller: Caller | None, names: Mapping[str, str], body: bytes) -> tuple[int, BaseModel] | None:
        if caller is None or not caller.may(bound.scope):
            return None
        try:
            given: Any = json.loads(body) if body else {}
            if not is_root:
                if not isinstance(given, dict) or given.keys() & names.keys():
                    return None
                given |= names
            asked = bound.input.model_validate(given)
        except (ValueError, RecursionError, ValidationError):
            return None
        return status, answer_operation(bound, caller, asked)

    return answer
