"""`homing`, or Python that uses it, in a process that need not import it first: forked from one that has.

A process here has its own arguments, environment, folder and streams, and is signalled and killed like any other. Its
threads are waited for and its exit handlers run; what is saved is the second that importing takes, and the clearing up
of an interpreter. `make soak` starts new interpreters all the same, and so does whoever changes what an interpreter
reads at its start.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from tests.effort import SOAK

ROOT = Path(__file__).parent.parent
HOMING = ("-c", "from homing.cli.main import run; run()")
COMMAND = (sys.executable, *HOMING)
"""`homing` in a new interpreter."""
LANGUAGE = ("LC_", "LANG")
READ_AT_THE_START = ("PYTHON", *LANGUAGE, "TZ", "LD_")


class Forked:
    """A process; what `subprocess.Popen` gives, as far as the tests ask for it."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int | None = None,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
        text: bool = False,
    ) -> None:
        self.stdin: IO[Any] | None = None
        self.stdout: IO[Any] | None = None
        self.stderr: IO[Any] | None = None
        self.returncode: int | None = None
        self._text = text
        theirs: list[int] = []
        if stdin == subprocess.PIPE:
            read, write = os.pipe()
            theirs.append(read)
            self.stdin = self._opened(write, "w")
        else:
            theirs.append(os.open(os.devnull, os.O_RDONLY))
        for name, wanted, inherited in (("stdout", stdout, 1), ("stderr", stderr, 2)):
            if wanted == subprocess.PIPE:
                read, write = os.pipe()
                theirs.append(write)
                setattr(self, name, self._opened(read, "r"))
            elif wanted == subprocess.DEVNULL:
                theirs.append(os.open(os.devnull, os.O_WRONLY))
            else:
                given = inherited if wanted is None else wanted if isinstance(wanted, int) else wanted.fileno()
                theirs.append(os.dup(given))
        self._status, write = os.pipe()
        asked = {"arguments": list(arguments), "cwd": str(cwd or Path.cwd())}
        _parent().fork(asked | {"env": dict(os.environ if env is None else env)}, [*theirs, write])
        for one in (*theirs, write):
            os.close(one)
        self._report = b""
        self._read_status(2, None)
        self.pid = int(self._lines()[0])

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended."""
        if self.returncode is None:
            self._read_status(3, timeout)
            self.returncode = os.waitstatus_to_exitcode(int(self._lines()[1]))
            os.close(self._status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:  # noqa: A002
        """What it writes until it ends, given that to read."""
        end = None if timeout is None else time.monotonic() + timeout
        read: dict[str, Any] = {}
        threads = [threading.Thread(target=self._write, args=(input,), daemon=True)]
        for name in ("stdout", "stderr"):
            threads.append(threading.Thread(target=self._read, args=(name, read), daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_left(end))
        self.wait(_left(end))
        return read.get("stdout"), read.get("stderr")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in (self.stdout, self.stderr, self.stdin):
            if stream is not None:
                stream.close()
        self.wait()

    def _opened(self, file: int, mode: str) -> IO[Any]:
        return os.fdopen(file, mode, encoding="utf-8") if self._text else os.fdopen(file, f"{mode}b")

    def _write(self, given: Any) -> None:
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                if given:
                    self.stdin.write(given)
                self.stdin.close()

    def _read(self, name: str, into: dict[str, Any]) -> None:
        stream: IO[Any] | None = getattr(self, name)
        if stream is not None:
            into[name] = stream.read()
            stream.close()

    def _lines(self) -> list[bytes]:
        return self._report.split(b"\n")

    def _read_status(self, lines: int, timeout: float | None) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        while len(self._lines()) < lines:
            if not select.select([self._status], [], [], _left(end))[0]:
                raise subprocess.TimeoutExpired("homing", timeout or 0.0)
            piece = os.read(self._status, 64)
            assert piece, "the process that forks has ended"
            self._report += piece


def _left(end: float | None) -> float | None:
    return None if end is None else max(0.0, end - time.monotonic())


Process = subprocess.Popen[Any] | Forked


def start(arguments: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any) -> Process:
    """`homing` with these arguments, by the options of `subprocess.Popen`."""
    return start_python([*HOMING, *arguments], env=env, **options)


def start_python(arguments: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any) -> Process:
    """Python with these arguments, which begin with `-c`, `-m` or the path of a file; else as `start`."""
    if SOAK or _at_the_start(env if env is not None else os.environ) != _at_the_start(os.environ):
        return subprocess.Popen([sys.executable, *arguments], env=env, **options)
    return Forked(arguments, env=env, **options)


class Forks:
    """For the contracts of `homing.testing`: their processes are forks."""

    @staticmethod
    def start_python(code: str, *arguments: str) -> Process:
        return start_python(["-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def command() -> tuple[str, ...]:
    """`homing` as a command line, for programs that start it themselves. Who kills the process kills the fork."""
    return COMMAND if SOAK else (sys.executable, "-ISc", LAUNCHER, _parent().address, *HOMING)


def run(arguments: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """`homing` with these arguments, from its start to its end."""
    return run_python([*HOMING, *arguments], **options)


def run_python(
    arguments: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Python with these arguments, from its start to its end."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = start_python(arguments, cwd=cwd, env=env, **streams)
    try:
        written, errors = process.communicate(stdin, timeout=300)
    finally:
        process.kill()
    return subprocess.CompletedProcess([sys.executable, *arguments], process.wait(), written, errors)


def _at_the_start(env: Mapping[str, str]) -> dict[str, str]:
    found = {name: value for name, value in env.items() if name.startswith(READ_AT_THE_START)}
    # Of a language an interpreter reads the encoding only, and writes UTF-8 where none is told.
    utf_8 = {name for name, value in found.items() if name.startswith(LANGUAGE) and value.upper().endswith("UTF-8")}
    return {name: value for name, value in found.items() if name not in utf_8}


class _Parent:
    """The process that has imported everything and forks on demand; who knows its address may ask it, too."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._asking = threading.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="homing-forked-")
        self.address = str(Path(self._folder.name, "socket"))
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(self.address)
        listening.listen()
        code = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); import tests.fork_server; "
            f"tests.fork_server.fork_on_demand({theirs.fileno()}, {listening.fileno()})"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            pass_fds=[theirs.fileno(), listening.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        listening.close()

    def fork(self, asked: Mapping[str, Any], files: Sequence[int]) -> None:
        content = json.dumps(asked).encode()
        with self._asking:
            socket.send_fds(self._socket, [len(content).to_bytes(8)], files)
            self._socket.sendall(content)

    def close(self) -> None:
        self._socket.close()
        self._process.wait()
        self._folder.cleanup()


@cache
def _parent() -> _Parent:
    parent = _Parent()
    atexit.register(parent.close)
    return parent


# Hands over its streams, tells what it is told, and ends as the fork ends. The fork is killed when it is gone.
LAUNCHER = """
import json, os, signal, socket, sys
asking = socket.socket(socket.AF_UNIX)
asking.connect(sys.argv[1])
status, theirs = os.pipe()
content = json.dumps({"arguments": sys.argv[2:], "cwd": os.getcwd(), "env": dict(os.environ)}).encode()
socket.send_fds(asking, [len(content).to_bytes(8)], [0, 1, 2, theirs])
asking.sendall(content)
for one in (0, 1, 2, theirs):
    os.close(one)
report = os.fdopen(status)
pid = int(report.readline())
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, frame: os.kill(pid, number))
how = int(report.readline())
if os.WIFSIGNALED(how):
    signal.signal(os.WTERMSIG(how), signal.SIG_DFL)
    os.kill(os.getpid(), os.WTERMSIG(how))
os._exit(os.WEXITSTATUS(how))
"""
