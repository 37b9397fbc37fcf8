"""What is at rest belongs to whoever runs this: folders 0700, files 0600, also those that were there before."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

FOLDER, FILE = 0o700, 0o600


def private_folder(folder: Path) -> None:
    """Make a folder, with those above it, that nobody else reads. Raises OSError where it cannot be made.

    One that was there is closed as well where it is ours: empty, or with a database of ours in it. Never one that
    everybody writes to, the home of a user, or the folder that a program was started in: these hold more than ours.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=FOLDER)
        return
    if folder.resolve() not in (Path.home(), Path.cwd()) and _is_ours(folder):
        close(folder, FOLDER)


def _is_ours(folder: Path) -> bool:
    with suppress(OSError):
        if folder.stat().st_mode & stat.S_ISVTX:
            return False
        return not any(folder.iterdir()) or (folder / "homing.db").exists() or any(folder.glob("*.lance"))
    return False


def private_file(file: Path) -> None:
    """Make an empty file that nobody else reads, and close one that was there."""
    os.close(os.open(file, os.O_CREAT | os.O_WRONLY, FILE))
    close(file, FILE)


def close(path: Path, mode: int) -> None:
    """Take from others what they may do with a file or a folder of ours."""
    with suppress(OSError):
        found = path.stat()
        if is_open(found) and hasattr(os, "geteuid") and found.st_uid == os.geteuid():
            path.chmod(stat.S_IMODE(found.st_mode) & mode)


def is_open(found: os.stat_result) -> bool:
    """Whether others than the owner may do anything with it."""
    return bool(found.st_mode & 0o077)
