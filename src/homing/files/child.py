"""The process that reads files of strangers: it forks a child for each, which has a budget and ends with its file.

The helper itself never looks at a file. It has imported the libraries, so that a child costs milliseconds, and it is
the one that kills: it knows which of its children still live. It ends when nobody holds the other end of its socket.
Where a system cannot fork, a new interpreter reads one file from its standard input (`read_one`).
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import select
import signal
import socket
import struct
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import IO, Any

from homing.errors import FileDamaged, FileTooCostly, HomingError
from homing.files.docx import read_docx
from homing.files.epub import read_epub
from homing.files.file_text import MIB, FileText, Format, Limits
from homing.files.pdf import read_pdf
from homing.files.xlsx import read_xlsx
from homing.progress import Progress

Reader = Callable[[bytes, str, Limits, Progress], FileText]
READERS: Mapping[Format, Reader] = {"pdf": read_pdf, "docx": read_docx, "xlsx": read_xlsx, "epub": read_epub}
"""Of the formats that are not plain text."""
LIBRARIES: Mapping[Format, str] = {"pdf": "pypdf", "docx": "docx", "xlsx": "openpyxl", "epub": "lxml.etree"}
"""What the helper imports before it forks, once: it costs more than most files."""
FORMATS: tuple[Format, ...] = tuple(READERS)

ORDER = struct.Struct("!cBQ")
"""What the helper is told: `READ` with a format, or `KILL`, and the number of the request."""
READ, KILL = b"R", b"K"
LENGTH = struct.Struct("!Q")
IDLE = 60.0
"""Seconds without a file after which the helper ends, and gives back its memory."""


def serve(descriptor: int) -> None:
    """Fork a child for each file until the other end of the socket is closed, or nothing came for a while."""
    _prepare()
    control = socket.socket(fileno=descriptor)
    woken, wakes = os.pipe()
    sources: list[socket.socket | int] = [control, woken]
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    running: dict[int, tuple[int, socket.socket]] = {}
    try:
        while True:
            ready = select.select(sources, [], [], None if running else IDLE)[0]
            if woken in ready:
                os.read(woken, 4096)
                _reap(running)
            if control in ready:
                order, descriptors, _, _ = socket.recv_fds(control, ORDER.size, 1)
                if len(order) < ORDER.size:
                    return
                kind, form, number = ORDER.unpack(order)
                if kind == KILL:
                    _kill(pid for pid, (one, _) in running.items() if one == number)
                    continue
                _fork(FORMATS[form], number, socket.socket(fileno=descriptors[0]), running, (control.fileno(), woken))
            if not ready and not running:
                return
    finally:
        _kill(running)


def _fork(
    form: Format, number: int, wire: socket.socket, running: dict[int, tuple[int, socket.socket]], own: tuple[int, int]
) -> None:
    importlib.import_module(LIBRARIES[form])
    pid = os.fork()
    if pid:
        running[pid] = (number, wire)
        return
    status = 1
    try:
        # What a child of another file talks through is none of this one's business.
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in (*own, *(other.fileno() for _, other in running.values())):
            os.close(descriptor)
        with wire.makefile("rb") as incoming:
            _answer(incoming, wire.sendall)
        status = 0
    finally:
        os._exit(status)


def _reap(running: dict[int, tuple[int, socket.socket]]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        _, wire = running.pop(pid)
        # Who asked may have gone.
        with suppress(OSError), wire:
            send(wire.sendall, {"ended": os.waitstatus_to_exitcode(status)})


def _kill(pids: Iterable[int]) -> None:
    for pid in list(pids):
        os.kill(pid, signal.SIGKILL)


def read_one() -> None:
    """Read the file on standard input, and write what it says to standard output."""
    _prepare()

    def write(content: bytes) -> None:
        sys.stdout.buffer.write(content)

    _answer(sys.stdin.buffer, write)
    send(write, {"ended": 0})
    sys.stdout.buffer.flush()


def _prepare() -> None:
    # openpyxl would import numpy, and needs it for nothing here.
    sys.modules["numpy"] = None  # type: ignore[assignment]
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")


def _answer(incoming: IO[bytes], write: Callable[[bytes], None]) -> None:
    asked = json.loads(receive(incoming))
    content = receive(incoming)
    limits = Limits(**asked["limits"])
    before = _address_space("VmSize")
    restrict(limits)

    def progress(done: int, total: int) -> None:
        send(write, {"progress": [done, total]})

    try:
        read = READERS[asked["format"]](content, asked["filename"], limits, progress)
        answer: Any = {"read": asdict(read)}
        send(write, answer)
    except HomingError as error:
        # A library that is refused memory may take the file for a broken one.
        starved = isinstance(error, FileDamaged) and _address_space("VmPeak") > 0.75 * (before + limits.memory)
        send(write, error_message(too_costly(asked["filename"], "memory", limits) if starved else error))
    except MemoryError:
        send(write, error_message(too_costly(asked["filename"], "memory", limits)))
    except RecursionError:
        send(write, error_message(FileDamaged(f"{asked['filename']} is nested deeper than any honest file")))


def restrict(limits: Limits) -> None:
    """Give this process, from here on, what a file may cost; it writes no file and leaves no image of its memory."""
    try:
        import resource
    except ImportError:
        return
    cpu = max(1, round(limits.cpu_seconds))
    budgets = {
        resource.RLIMIT_CPU: (cpu, cpu + 1),
        resource.RLIMIT_AS: (_address_space("VmSize") + limits.memory,) * 2,
        resource.RLIMIT_FSIZE: (0, 0),
        resource.RLIMIT_CORE: (0, 0),
    }
    for kind, (soft, hard) in budgets.items():
        most = resource.getrlimit(kind)[1]
        within = (soft, hard) if most == resource.RLIM_INFINITY else (min(soft, most), min(hard, most))
        try:
            resource.setrlimit(kind, within)
        except (ValueError, OSError):
            continue  # macOS has no limit of address space


def _address_space(what: str) -> int:
    """Bytes that this process has mapped (`VmSize`), or had at most (`VmPeak`); 0 where the system does not say."""
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith(f"{what}:")), 0)
    except OSError:
        return 0


def too_costly(filename: str, of: str, limits: Limits) -> FileTooCostly:
    """The error of a file that used up a budget: of `time`, `cpu` or `memory`."""
    spent = {
        "time": f"{limits.seconds:g} s (files.seconds)",
        "cpu": f"{limits.cpu_seconds:g} s of processor time (files.cpu_seconds)",
        "memory": f"{limits.memory / MIB:g} MiB of memory (files.memory)",
    }
    return FileTooCostly(
        f"reading {filename} took more than {spent[of]}; split it, or save it again in its program",
        details={"filename": filename, "of": of},
    )


def error_message(error: HomingError) -> dict[str, Any]:
    """An error as it crosses to the other process."""
    return {"error": {"code": error.code, "message": error.message, "details": error.details}}


def send(write: Callable[[bytes], None], message: Any) -> None:
    """A message with its length before it."""
    encoded = json.dumps(message, ensure_ascii=False, default=str).encode(errors="surrogatepass")
    write(LENGTH.pack(len(encoded)) + encoded)


def receive(incoming: IO[bytes]) -> bytes:
    """The bytes of one message."""
    return incoming.read(LENGTH.unpack(incoming.read(LENGTH.size))[0])
