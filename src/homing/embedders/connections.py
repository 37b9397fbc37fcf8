"""An HTTP client that is made at its first use and closed when its last user is done."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2


@dataclass(slots=True)
class _Shared:
    client: httpx2.Client
    users: int = 0
    retired: bool = False


class Connections:
    """Lends one client to any number of threads.

    Closing while a request is under way must not touch its socket: the thread that reads it would wait for its timeout.
    """

    def __init__(self, make: Callable[[], httpx2.Client]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._shared: _Shared | None = None

    @contextmanager
    def use(self) -> Iterator[httpx2.Client]:
        """The client, for as long as the block runs."""
        with self._lock:
            if self._shared is None:
                self._shared = _Shared(self._make())
                # Who forgets to close, or drops a provider that others still use, leaks nothing.
                weakref.finalize(self, self._shared.client.close)
            shared = self._shared
            shared.users += 1
        try:
            yield shared.client
        finally:
            with self._lock:
                shared.users -= 1
                if shared.retired and not shared.users:
                    shared.client.close()

    def close(self) -> None:
        """Closes the client now or after its last user; the next use makes a new one."""
        with self._lock:
            shared, self._shared = self._shared, None
            if shared is not None:
                shared.retired = True
                if not shared.users:
                    shared.client.close()
