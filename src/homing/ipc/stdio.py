"""`homing ipc`: serves the process that started us until it closes our input or asks us to stop."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import IO

from homing.channels import Channels
from homing.ipc.framing import MessageReader, Received, Wire
from homing.ipc.session import Session
from homing.ipc.tasks import Limits

log = logging.getLogger(__name__)

STOPPING = (signal.SIGTERM, signal.SIGINT)


def own_stdio() -> tuple[IO[bytes], IO[bytes]]:
    """Take standard input and output for the protocol alone; call it before anything else.

    From then on whatever prints, in Python or in a library, prints to standard error, and whatever reads finds nothing.
    """
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)
    os.close(nothing)
    sys.stdout = sys.stderr
    return os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb")


class StdioServer:
    """One session on a pair of streams.

    At the end of the input, all that was asked is still answered. When asked to stop, by a signal or by `exit`, or when
    the client is gone, short requests have the grace of the limits to finish and long ones are taken back: they go on
    where they stopped when they are asked for again.
    """

    def __init__(self, channels: Channels, incoming: IO[bytes], outgoing: IO[bytes], limits: Limits) -> None:
        self._limits = limits
        self._reader = MessageReader(incoming, limits.message_bytes)
        self._wire = Wire(outgoing, broken=self._client_gone)
        self._session = Session(channels, self._wire.send, limits, leave=self.stop)
        self._ended = threading.Event()
        self._stopping = threading.Event()
        self._finished = threading.Event()
        self._gone = False

    def serve(self) -> bool:
        """Serve until the end; whether everything under way was finished."""
        threading.Thread(target=self._read, name="ipc-reader", daemon=True).start()
        self._ended.wait()
        # Others wait and answer, so that this one can be told to hurry: a client that does not read blocks whoever
        # answers it.
        threading.Thread(target=self._answer_all, name="ipc-answer-all", daemon=True).start()
        self._stopping.wait()
        threading.Thread(target=self._wind_up, name="ipc-wind-up", daemon=True).start()
        return self._finished.wait(self._limits.grace)

    def stop(self) -> None:
        """Have `serve` return soon. May be called from any thread."""
        self._stopping.set()
        self._ended.set()

    def _read(self) -> None:
        first = True
        try:
            while (message := self._reader.read()) is not None and not self._stopping.is_set():
                if first and isinstance(message, Received):
                    self._wire.framing = message.framing
                    first = False
                self._session.receive(message)
        except (OSError, ValueError) as error:
            log.warning("cannot read from the client: %s", error)
        except Exception:
            log.exception("the reader failed")
        self._ended.set()

    def _answer_all(self) -> None:
        self._session.wait()
        self._stopping.set()

    def _wind_up(self) -> None:
        self._session.close()
        self._session.cancel_all(slow_only=not self._gone)
        self._session.wait()
        self._session.end()
        self._finished.set()

    def _client_gone(self) -> None:
        # Called from inside a send: whoever sends may hold a lock that canceling needs, so that is left to `serve`.
        self._gone = True
        self.stop()


def serve_stdio(channels: Channels, incoming: IO[bytes], outgoing: IO[bytes], limits: Limits) -> bool:
    """Serve a pair of streams until it ends, with SIGTERM and SIGINT as a wish to stop; call it on the main thread."""
    server = StdioServer(channels, incoming, outgoing, limits)
    woken, waking = socket.socketpair()
    waking.setblocking(False)
    # The system may give a signal to any thread, and Python's handler runs in this one, which is not woken for it where
    # it waits for a lock. So every signal is written to a socket, and whoever reads that is woken.
    written_to = signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda *_: None) for number in STOPPING}
    threading.Thread(target=_stop_when_told, args=(server, woken), name="ipc-signals", daemon=True).start()
    try:
        return server.serve()
    finally:
        signal.set_wakeup_fd(written_to)
        for number, handler in before.items():
            with suppress(TypeError):
                signal.signal(number, handler)
        waking.close()


def _stop_when_told(server: StdioServer, woken: socket.socket) -> None:
    with woken:
        while told := woken.recv(1):
            if told[0] in STOPPING:
                server.stop()
