"""Reading a file in another process, which is killed when it costs too much or nobody wants its text any more."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from itertools import count
from typing import Any

from homing import errors
from homing.errors import FileDamaged, FileUnreadable, HomingError
from homing.files.child import FORMATS, KILL, LENGTH, ORDER, READ, too_costly
from homing.files.file_text import MIB, FileText, Format, Limits, Part
from homing.progress import IsCanceled, Progress

LOOK_UP = 0.1
"""Seconds between two looks at whether anybody still waits for the text."""
GRACE = 5.0
"""Seconds that the end of a reader that was killed is waited for."""
_START = "import sys; sys.path[:] = {paths!r}; from homing.files import child; child.{call}"


def read_isolated(
    content: bytes, filename: str, form: Format, limits: Limits, progress: Progress, canceled: IsCanceled
) -> FileText:
    """The text of a file, read by a process that has the budgets of `limits`.

    It is killed when `progress` raises, or `canceled` says so. Raises FileUnreadable in one of its kinds, FileTooCostly
    where a budget was used up, errors.Canceled.
    """
    header = {"format": form, "filename": filename, "limits": asdict(limits)}
    asked = json.dumps(header, ensure_ascii=False).encode(errors="surrogatepass")
    request = b"".join((LENGTH.pack(len(asked)), asked, LENGTH.pack(len(content)), content))
    messages = _HELPER.read(form, request, limits) if hasattr(os, "fork") else in_new_interpreter(request, limits)
    try:
        for message in messages:
            if canceled():
                raise errors.Canceled(f"nobody waits for {filename} any more; it was not read")
            if message is None:
                continue
            if "progress" in message:
                progress(*message["progress"])
            elif "read" in message:
                return _file_text(message["read"], form, filename)
            elif "error" in message:
                raise _as_error(message["error"])
            else:
                raise _ended(message["ended"], filename, limits)
    except TimeoutError:
        raise too_costly(filename, "time", limits) from None
    finally:
        messages.close()
    raise FileUnreadable(f"the process that read {filename} ended; try again", details={"filename": filename})


def _file_text(read: Any, form: Format, filename: str) -> FileText:
    try:
        parts = tuple(Part(str(one["name"]), int(one["start"]), int(one["end"])) for one in read["parts"])
        return FileText(str(read["text"]), form, filename, parts, tuple(map(str, read["notes"])))
    except (KeyError, TypeError, ValueError):
        raise _ended(1, filename, Limits()) from None


def _as_error(told: dict[str, Any]) -> HomingError:
    kinds = (one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, HomingError))
    kind = next((one for one in kinds if one.code == told["code"]), FileUnreadable)
    return kind(told["message"], details=told["details"])


def _ended(status: int, filename: str, limits: Limits) -> HomingError:
    """Why a process ended without a word. Who takes too much memory is killed by the system."""
    if status == -signal.SIGXCPU:
        return too_costly(filename, "cpu", limits)
    if status == -signal.SIGKILL:
        return too_costly(filename, "memory", limits)
    return FileDamaged(
        f"{filename} cannot be read: its reader broke down; open it in its program and save it again",
        details={"filename": filename},
    )


Messages = Iterator[dict[str, Any] | None]
"""What the reader says; None when it said nothing for a while."""


class _Helper:
    """The process that forks the readers: started when the first file comes, and again when it has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def read(self, form: Format, request: bytes, limits: Limits) -> Any:
        """The messages about one file. Ending the iteration kills its reader. Raises TimeoutError."""
        deadline = time.monotonic() + limits.seconds
        for attempt in range(2):
            number = next(self._numbers)
            with self._order(number, form) as wire:
                heard = False
                try:
                    _write(wire, request, deadline)
                    for message in _messages(wire, 8 * limits.characters + MIB, deadline):
                        heard = heard or message is not None
                        yield message
                except (BrokenPipeError, ConnectionResetError):
                    pass
                finally:
                    self._kill(number, wire)
                # The helper may have ended in the very moment in which it was asked: nobody looked at the file.
                if heard or attempt:
                    return

    def _order(self, number: int, form: Format) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            for _ in range(2):
                try:
                    control = self._started()
                    socket.send_fds(control, [ORDER.pack(READ, FORMATS.index(form), number)], [theirs.fileno()])
                    break
                except (BrokenPipeError, ConnectionResetError):
                    self._stop()
        return ours

    def _kill(self, number: int, wire: socket.socket) -> None:
        """End a reader, and wait until it has: what it held is free when this returns."""
        with self._lock, suppress(OSError):
            if self._control is not None:
                self._control.sendall(ORDER.pack(KILL, 0, number))
        with suppress(OSError):
            wire.settimeout(GRACE)
            while wire.recv(MIB):
                pass

    def _started(self) -> socket.socket:
        if self._control is None:
            ours, theirs = socket.socketpair()
            with theirs:
                # None of our variables: keys are among them, and the reader needs none.
                self._process = subprocess.Popen(
                    _command(f"serve({theirs.fileno()})"),
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={},
                    start_new_session=True,
                )
            self._control = ours
        return self._control

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.wait()
        self._control = self._process = None

    def close(self) -> None:
        """End the helper and every reader."""
        with self._lock:
            self._stop()

    def forget(self) -> None:
        """In a process that was forked off: the helper is that of the other one."""
        self._lock = threading.Lock()
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.returncode = 0  # not ours to wait for
        self._control = self._process = None


def in_new_interpreter(request: bytes, limits: Limits) -> Any:
    """The messages about one file, from an interpreter of its own: where a system cannot fork."""
    deadline = time.monotonic() + limits.seconds
    with subprocess.Popen(
        _command("read_one()"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        given: bytes | None = request
        try:
            while True:
                try:
                    answer = process.communicate(given, timeout=LOOK_UP)[0]
                    break
                except subprocess.TimeoutExpired:
                    given = None
                    if time.monotonic() > deadline:
                        raise TimeoutError from None
                    yield None
        finally:
            process.kill()
        yield from split_messages(bytearray(answer), 8 * limits.characters + MIB)
        yield {"ended": process.returncode}


def _command(call: str) -> list[str]:
    return [sys.executable, "-c", _START.format(paths=sys.path, call=call)]


def _write(wire: socket.socket, request: bytes, deadline: float) -> None:
    left = memoryview(request)
    while left:
        wire.settimeout(max(0.001, deadline - time.monotonic()))
        left = left[wire.send(left[: 4 * MIB]) :]


def _messages(wire: socket.socket, most: int, deadline: float) -> Messages:
    """What comes until the other end is closed. Raises TimeoutError at the deadline."""
    held = bytearray()
    while (left := deadline - time.monotonic()) > 0:
        wire.settimeout(min(LOOK_UP, left))
        try:
            piece = wire.recv(MIB)
        except TimeoutError:
            yield None
            continue
        if not piece:
            return
        held += piece
        yield from split_messages(held, most)
    raise TimeoutError


def split_messages(held: bytearray, most: int) -> Messages:
    """The whole messages at the beginning, which are taken off. A reader that a file took over is not believed."""
    while len(held) >= LENGTH.size:
        (size,) = LENGTH.unpack(held[: LENGTH.size])
        if size > most:
            raise BrokenPipeError
        if len(held) < LENGTH.size + size:
            return
        body = bytes(held[LENGTH.size : LENGTH.size + size])
        del held[: LENGTH.size + size]
        try:
            message = json.loads(body.decode(errors="surrogatepass"))
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise BrokenPipeError
        yield message


_HELPER = _Helper()
atexit.register(_HELPER.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_HELPER.forget)
