"""What one caller may take of a server: bytes of a body, and a place among those worked on.

A machine that works on everything at once finishes nothing: beyond a few requests per core each more makes all slower,
so the others wait their turn, and when too many wait, are told to come back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from homing.config import FileSettings, ServerSettings
from homing.errors import BodyTooLarge, Overloaded, RequestTimeout
from homing.server.metrics import Metrics
from homing.server.shared import Share

LOOK_UP = 0.05
"""Seconds between two looks at whether another worker has given a place back."""


class ConcurrencyLimit:
    """At most `concurrent` requests inside, at most `waiting` before the door, each for at most `patience` seconds.

    `exempt` are those that cost nothing, or that last: they come in at once and take no place.
    """

    def __init__(
        self, app: ASGIApp, *, settings: ServerSettings, metrics: Metrics, exempt: Callable[[Scope], bool]
    ) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._exempt = exempt
        self._places = asyncio.Semaphore(settings.concurrent)
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._exempt(scope):
            await self._app(scope, receive, send)
            return
        await self._enter()
        self._metrics.working.inc()

        async def taken(message: Message) -> None:
            # Who does not read the answer gives the place back.
            try:
                async with asyncio.timeout(self._settings.body_timeout):
                    await send(message)
            except TimeoutError:
                raise RequestTimeout("the answer was not read in time; ask again") from None

        try:
            await self._app(scope, receive, taken)
        finally:
            self._metrics.working.dec()
            self._places.release()

    async def _enter(self) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        if self._waiting >= self._settings.waiting:
            raise Overloaded(f"{self._waiting} requests are waiting already; come back in a moment", retry_after=1)
        self._waiting += 1
        self._metrics.waiting.inc()
        try:
            await asyncio.wait_for(self._places.acquire(), self._settings.patience)
        except TimeoutError:
            raise Overloaded(
                f"there was no room for this request within {self._settings.patience:g} s; come back later",
                retry_after=self._settings.patience,
            ) from None
        finally:
            self._waiting -= 1
            self._metrics.waiting.dec()


class FileTurns:
    """`at_once` files are read at the same time, `per_user` of one user among them, and `waiting` of that user wait.

    So who sends many files that take long to read keeps nobody else from being served, by whichever worker.
    """

    def __init__(self, settings: FileSettings, *, waiting: int, patience: float, share: Share) -> None:
        self._share = share
        self._settings = settings
        self._patience = patience
        self._waiting = waiting
        self._places = asyncio.Semaphore(settings.at_once)
        self._users: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def of(self, user: str) -> AsyncIterator[None]:
        """A user's turn, for as long as the block lasts. Raises Overloaded."""
        own, inside = self._users.get(user, (asyncio.Semaphore(self._settings.per_user), 0))
        if inside >= self._settings.per_user + self._waiting:
            raise Overloaded(f"{inside} of your files are waiting already; come back later", retry_after=5)
        self._users[user] = own, inside + 1
        try:
            async with AsyncExitStack() as held:
                try:
                    async with asyncio.timeout(self._patience):
                        await held.enter_async_context(own)
                        await held.enter_async_context(self._places)
                        for name, count in (
                            (f"files of {user}", self._settings.per_user),
                            ("files", self._settings.at_once),
                        ):
                            await self._wait_for_place(held, name, count)
                except TimeoutError:
                    raise Overloaded(
                        f"other files are being read for more than {self._patience:g} s; come back later", retry_after=5
                    ) from None
                yield
        finally:
            own, inside = self._users.pop(user)
            if inside > 1:
                self._users[user] = own, inside - 1

    async def _wait_for_place(self, held: AsyncExitStack, name: str, count: int) -> None:
        """Among those of all workers."""
        while self._share.folder is not None:
            if (place := self._share.take(name, count)) is not None:
                held.callback(place.release)
                return
            await asyncio.sleep(LOOK_UP)


def whole(body: bytes) -> Message:
    """A body that came at once."""
    return {"type": "http.request", "body": body, "more_body": False}


def first(message: Message, receive: Receive) -> Receive:
    """A message, and then what comes."""
    given: Message | None = message

    async def replay() -> Message:
        nonlocal given
        now, given = given, None
        return now if now is not None else await receive()

    return replay


class BodyLimit:
    """Reads a body whole before anything works on it: at most `most` bytes, in pieces or not.

    So a caller that sends slowly, or for ever, holds no place among the requests that are worked on.
    """

    def __init__(self, app: ASGIApp, *, most: int, seconds: float) -> None:
        self._app = app
        self._most = most
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "")
        if length.isdigit() and int(length) > self._most:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._read(receive)
        except TimeoutError:
            raise RequestTimeout(f"the body did not arrive within {self._seconds:g} s; send it again") from None
        if body is None:
            return
        await self._app(scope, first(whole(body), receive), send)

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
