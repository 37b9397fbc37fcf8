"""The name of a process among all on all machines, and whether the one of a name still runs."""

from __future__ import annotations

import os
import secrets
import socket
import uuid
from functools import cache
from pathlib import Path

PROCESS = secrets.token_hex(4)
"""Tells this process from an earlier one that had its number."""


def this_process() -> str:
    """The name of this process: its host for people to read, then what nobody else has."""
    pid, (boot, numbers) = os.getpid(), _place()
    return f"{socket.gethostname()}:{boot}:{numbers}:{pid}:{_started(pid)}:{PROCESS}"


def is_gone(holder: str, *, local: bool) -> bool:
    """Whether a process, given by its name and what it calls itself, is certainly gone: it would be found from here,
    and is not. Of one on another machine, or in another container, nothing is known; `local` is whether all are on
    this machine, so that one from before it was started again is gone."""
    parts = holder.split(":")
    if len(parts) != 7:
        # A row of an earlier version.
        return False
    host, boot, numbers, pid, started, process, _ = parts
    if (boot, numbers) != _place():
        return local and host == socket.gethostname() and boot != _place()[0]
    if int(pid) == os.getpid():
        return process != PROCESS
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return _started(int(pid)) != started


@cache
def _place() -> tuple[str, str]:
    """What tells this start of the machine from others, and whose numbers of processes are ours.

    The name of the host does neither: containers may share that, and each has a process number 1.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
        return boot, str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        # No Linux, and so no containers.
        return f"{uuid.getnode():x}", ""


def _started(pid: int) -> str:
    """When a process was started, by the clock of its machine; empty where the system does not say."""
    try:
        # The name of the program comes before, and may hold anything.
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except OSError:
        return ""
