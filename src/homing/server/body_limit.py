"""How much one request may send, whatever it says about its length."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from homing.errors import BodyTooLarge, InvalidArgument

SECONDS = 60.0
"""How long a body may take to arrive."""


class BodyLimit:
    """Reads a body whole before anything works on it: at most `most` bytes, in pieces or not.

    So a caller that sends slowly, or for ever, holds no place among the requests that are worked on.
    """

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "")
        if length.isdigit() and int(length) > self._most:
            raise self._too_large()
        try:
            body = await asyncio.wait_for(self._read(receive), SECONDS)
        except TimeoutError:
            raise InvalidArgument(f"the body did not arrive within {SECONDS:g} s; send it again") from None
        if body is None:
            return
        given: Message | None = {"type": "http.request", "body": body, "more_body": False}

        async def replay() -> Message:
            nonlocal given
            message, given = given, None
            return message if message is not None else await receive()

        await self._app(scope, replay, send)

    async def _read(self, receive: Receive) -> bytes | None:
        """The body; None where the caller went away."""
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > self._most:
                raise self._too_large()
            if not message.get("more_body", False):
                return b"".join(pieces)

    def _too_large(self) -> BodyTooLarge:
        return BodyTooLarge(
            f"a request may send {self._most} bytes; send less at once, or raise server.max_body",
            details={"most": self._most},
        )
