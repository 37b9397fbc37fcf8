"""The first to see a request and the last to see its answer: names it, times it, counts it, logs it, dresses it."""

from __future__ import annotations

import logging
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from homing.errors import HomingError
from homing.server.failures import failed, failure
from homing.server.log_lines import HEADER, REQUEST_ID, request_id
from homing.server.metrics import Metrics

log = logging.getLogger(__name__)
ACCESS = logging.getLogger("homing.server.access")

SECURITY = (
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
        b"form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
"""On every answer: a page of ours runs nothing but what we serve, and no other site may embed it."""
NO_STORE = (b"cache-control", b"no-store")
NAMED = HEADER.encode()


class RequestLog:
    """Wraps everything else. What goes wrong unexpectedly further in is logged with its trace and told as a 500."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        name = request_id(Headers(scope=scope).get(HEADER))
        token = REQUEST_ID.set(name)
        status = 0

        async def dressed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = message.get("headers", ())
                named = {key for key, _ in given}
                cached = scope["path"] == "/" or scope["path"].startswith("/page/")
                added = SECURITY if cached else (*SECURITY, NO_STORE)
                message["headers"] = [
                    *(one for one in given if one[0] != NAMED),
                    (NAMED, name.encode()),
                    *(one for one in added if one[0] not in named),
                ]
            await send(message)

        try:
            await self._app(scope, receive, dressed)
        except HomingError as error:
            if status:
                raise
            await failed(error)(scope, receive, dressed)
        except Exception as error:
            log.exception("unexpected failure")
            if status:
                raise
            sentence = (
                f"an unexpected failure ({type(error).__name__}); the server's log tells more under this request id"
            )
            await failure(500, "INTERNAL_ERROR", sentence)(scope, receive, dressed)
        finally:
            self._record(scope, status, time.perf_counter() - started)
            REQUEST_ID.reset(token)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "") or ("/mcp" if scope["path"].startswith("/mcp") else "none")
        # A client that went away before there was an answer.
        status = status or 499
        self._metrics.answered(scope["method"], route, status, seconds)
        caller = scope.get("state", {}).get("caller")
        ACCESS.info(
            "request",
            extra={
                "method": scope["method"],
                "path": scope["path"],
                "route": route,
                "status": status,
                "ms": round(seconds * 1000, 2),
                "user": "" if caller is None else caller.user,
            },
        )
