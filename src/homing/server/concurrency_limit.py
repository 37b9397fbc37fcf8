"""How many requests are worked on at once: the others wait their turn, and when too many wait, are told to come back.

A machine that works on everything at once finishes nothing. Beyond a few requests per core each more makes all slower.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from homing.config import ServerSettings
from homing.errors import Overloaded
from homing.server.metrics import Metrics


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
        try:
            await self._app(scope, receive, send)
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
