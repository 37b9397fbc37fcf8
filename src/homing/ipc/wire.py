"""The way out: whole messages, one at a time, in the framing that the client speaks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any

from homing.channels.envelope import as_json
from homing.ipc.framing import Framing, framed

log = logging.getLogger(__name__)


class Wire:
    """Safe to send on from several threads; blocks while the client does not read.

    When nobody reads any more, `broken` is called once and everything after that goes nowhere.
    """

    def __init__(self, stream: IO[bytes], *, broken: Callable[[], None]) -> None:
        self.framing: Framing = "lines"
        self._stream = stream
        self._broken = broken
        self._gone = False
        self._lock = threading.Lock()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; it has left this process when this returns."""
        body = as_json(message)
        with self._lock:
            if self._gone:
                return
            try:
                self._stream.write(framed(body, self.framing))
                self._stream.flush()
                return
            except (OSError, ValueError) as error:
                self._gone = True
                log.warning("the client does not read any more: %s", error)
        self._broken()
