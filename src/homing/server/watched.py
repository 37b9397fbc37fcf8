"""Work for a client that may go away meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from homing.progress import IsCanceled

T = TypeVar("T")
LOOK_UP = 0.2
"""Seconds between two looks at whether the client is still there."""


async def watched(request: Request, work: Callable[[IsCanceled], T]) -> T:
    """What a piece of work comes to, in a thread; it is told whether the client has gone, which takes it back."""
    gone = threading.Event()
    answering = asyncio.ensure_future(run_in_threadpool(work, gone.is_set))
    while not answering.done():
        await asyncio.wait({answering}, timeout=LOOK_UP)
        if not answering.done() and await request.is_disconnected():
            gone.set()
    return answering.result()
