"""How far the background is, on a progress bar."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait


def work_through(pending: Callable[[], int], flush: Callable[[], object], step: Callable[[int, int], None]) -> int:
    """Embed what waits, telling how far that is; returns how many are left."""
    total = pending()
    with ThreadPoolExecutor(1) as worker:
        working = worker.submit(flush)
        while not working.done():
            step(max(0, total - pending()), total)
            wait([working], timeout=0.2)
        working.result()
    return pending()
