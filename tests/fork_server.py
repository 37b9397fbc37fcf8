"""The process that has imported everything and forks whenever it is asked to."""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import traceback
import types
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

# LanceDB and onnxruntime are not among them: they start threads when imported, and threads do not live on in a fork.
IMPORTED = (
    "homing.cli.main", "homing.app", "homing.server.application", "homing.mcp.server", "homing.ipc.stdio",
    "homing.embedders.local", "homing.stores.sqlite.store", "tokenizers", "apsw", "uvicorn", "rich.table",
)  # fmt: skip


def fork_on_demand(asked_at: int, address: int) -> None:
    """Forks whenever it is asked to, until whoever started it is gone."""
    import gc
    import importlib

    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    # Nobody waits for the keepers.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    asking, listening = socket.socket(fileno=asked_at), socket.socket(fileno=address)
    while True:
        ready = select.select([asking, listening], [], [])[0]
        stranger = listening.accept()[0] if listening in ready else None
        asked, files = _request(stranger or asking)
        if os.fork() == 0:
            asking.close()
            listening.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _keep(files[3], stranger)
            _become(asked, files[:3])
            _run(asked["arguments"])
        for one in files:
            os.close(one)
        if stranger is not None:
            stranger.close()


def _request(asking: socket.socket) -> tuple[dict[str, Any], list[int]]:
    head, files, _, _ = socket.recv_fds(asking, 8, 4)
    if not head:
        sys.exit()
    content, size = b"", int.from_bytes(head)
    while len(content) < size:
        # No more than this one: the next may be on its way already.
        content += asking.recv(size - len(content))
    return json.loads(content), files


def _keep(status: int, stranger: socket.socket | None) -> None:
    """Forks the process itself, says its number, and, when it has ended, how; returns in the process itself.

    When the stranger who asked for it is gone, the process is killed.
    """
    child = os.fork()
    if child == 0:
        os.close(status)
        if stranger is not None:
            stranger.close()
        return
    # What the process was given is its own: a pipe ends when it ends.
    kept = sorted({status} if stranger is None else {status, stranger.fileno()})
    for after, before in zip((-1, *kept), (*kept, 4096), strict=True):
        os.closerange(after + 1, before)
    os.write(status, b"%d\n" % child)
    if stranger is not None:
        ended = os.pidfd_open(child)
        if ended not in select.select([ended, stranger.fileno()], [], [])[0]:
            os.kill(child, signal.SIGKILL)
    _, how = os.waitpid(child, 0)
    with contextlib.suppress(BrokenPipeError):
        os.write(status, b"%d\n" % how)
    os._exit(0)


def _become(asked: Mapping[str, Any], files: Sequence[int]) -> None:
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    for place, name in enumerate(("stdin", "stdout", "stderr")):
        # Made anew, as at the start of an interpreter: the parent's know whether they were a file or a pipe.
        old = getattr(sys, name)
        binary = io.open(place, "wb" if place else "rb", closefd=False)  # noqa: SIM115, UP020 - open to the end
        new = io.TextIOWrapper(binary, encoding=old.encoding, errors=old.errors, line_buffering=place == 2)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])


def _run(arguments: Sequence[str]) -> NoReturn:
    """Runs Python as its command line says, and ends the process as that ended."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    code: object = 0
    try:
        match arguments:
            case "-c", script, *rest:
                sys.argv, sys.path[:0] = ["-c", *rest], [""]
                exec(compile(script, "<string>", "exec"), main.__dict__)
            case "-m", module, *rest:
                sys.argv, sys.path[:0] = [module, *rest], [os.getcwd()]
                runpy.run_module(module, run_name="__main__", alter_sys=True)
            case _:
                sys.argv, sys.path[:0] = list(arguments), [os.path.dirname(arguments[0])]
                runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as ended:
        code = ended.code or 0
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        code = 1
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120
    os._exit(code & 0xFF)
