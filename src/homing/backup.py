"""Backups: everything that a home keeps, made while servers run, and brought back whole or not at all.

A backup is a folder, and can be used as a data folder. It holds every database of the home (its users' included), saved
evaluations, skills that were copied into the home, and where the texts are in PostgreSQL a dump of that; `backup.json`
has the size and the SHA-256 of each file. Not in it are the keys of providers, which should lie nowhere twice, the
settings (`homing.toml`), which are yours to keep, and caches.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from homing.config import Settings
from homing.database.lazy import is_postgres, postgres_options
from homing.database.locking import WriteLock
from homing.database.private import private_file
from homing.errors import InvalidArgument, NotFound, StoreCorrupt, StoreReadOnly
from homing.progress import Progress, no_progress
from homing.stores import open_store

LIST = "backup.json"
FORMAT = 1
DUMP = "postgres.dump"
DATABASE = "homing.db"
FOLDERS = ("evaluations", "skills")
"""What else is kept of a home, with all that is below."""
USERS, USER_FILE = "users", "user.txt"
DERIVED = ("cache.db", "-wal", "-shm", ".lock", ".tmp")
"""How names end of what is not worth a word: it comes back by itself."""
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A backup that was made, or brought back: where it is, what it holds, what not, and what is wrong in it.

    `commands` are the programs of PostgreSQL that were run. `problems` are what a check found: damage of the home that
    was backed up, which `homing repair` mends as far as it is derived.
    """

    folder: Path
    files: int
    bytes: int
    left_out: Sequence[str]
    problems: Sequence[str]
    commands: Sequence[str]


def back_up(settings: Settings, target: Path, *, progress: Progress = no_progress) -> BackedUp:
    """Make a backup in a new folder, while others read and write; it is there when it is whole, and not before.

    Each database is as of one moment; nothing is written to two of them together. Raises InvalidArgument where the
    target is not a new place, or the texts are in LanceDB, and StoreError where something cannot be read or written.
    """
    databases, files, left_out = _contents(settings)
    commands = []
    with _made_aside(target, settings.data) as aside:
        report = _Steps(progress, sum(one.stat().st_size for one in (*databases.values(), *files.values())))
        for name, file in databases.items():
            _snapshot(file, _place(aside, name), report)
        for name, file in files.items():
            _copy(file, _place(aside, name), report)
        problems = [one for name in databases for one in _check(aside / name, name)]
        server = None
        if is_postgres(settings.database):
            from homing.database.postgres.driver import Address
            from homing.database.postgres.dumping import dump

            address, schema = _postgres(settings)
            private_file(aside / DUMP)
            commands.append(dump(Address(address), schema, aside / DUMP))
            server = {"schema": schema}
        listed = {str(one.relative_to(aside)): _described(one) for one in _below(aside)}
        made = {"format": FORMAT, "postgres": server, "left_out": left_out, "problems": problems, "files": listed}
        private_file(aside / LIST)
        (aside / LIST).write_text(json.dumps(made, indent=1, ensure_ascii=False), encoding="utf-8")
    total = sum(one["bytes"] for one in listed.values())
    return BackedUp(target.absolute(), len(listed), total, left_out, problems, commands)


def restore(settings: Settings, source: Path, *, progress: Progress = no_progress) -> BackedUp:
    """Bring a backup back to the data folder that the settings name, and to the PostgreSQL schema that they name.

    Both must be empty: nothing is overwritten. Every file is compared with its checksum, and every store is checked,
    before the folder is put in place in one step; what is wrong inside a store is told. Killed at any moment, the same
    again goes on. Raises InvalidArgument, StoreCorrupt where a file is not the one that was backed up, and StoreError.
    """
    made = _read_list(source)
    _check_fits(settings, made)
    commands: list[str] = []
    with _made_aside(settings.data) as aside:
        report = _Steps(progress, sum(one["bytes"] for one in made["files"].values()))
        for name, expected in made["files"].items():
            _copy(source / name, _place(aside, name), report)
            if _described(aside / name) != expected:
                raise StoreCorrupt(
                    f"{source / name} is not the file that was backed up; take another backup",
                    details={"file": name},
                )
        problems = [one for name in made["files"] if name.endswith(".db") for one in _check(aside / name, name)]
        if made["postgres"] is not None:
            problems += _restore_postgres(settings, aside / DUMP, commands)
            (aside / DUMP).unlink()
    _mark(settings).unlink(missing_ok=True)
    total = sum(one["bytes"] for one in made["files"].values())
    return BackedUp(settings.data.absolute(), len(made["files"]), total, made["left_out"], problems, commands)


def _restore_postgres(settings: Settings, file: Path, commands: list[str]) -> list[str]:
    from homing.database.postgres.driver import Address
    from homing.database.postgres.dumping import load, remove

    address, schema = _postgres(settings)
    commands.append(load(Address(address), schema, file, _mark(settings)))
    try:
        with closing(open_store(settings.store_url, row_security=settings.row_security)) as store:
            return store.check()
    except BaseException:
        # What cannot be opened was not brought back.
        remove(Address(address), schema)
        raise


def _mark(settings: Settings) -> Path:
    """Beside the data folder, while the schema is there and the folder is not yet."""
    return settings.data.absolute().with_name(f".{settings.data.name}.restoring")


def _contents(settings: Settings) -> tuple[dict[str, Path], dict[str, Path], list[str]]:
    """The databases and the other files that a backup holds, by their names in it, and what is left out."""
    if _in_lance(settings):
        raise InvalidArgument(
            "the texts of this home are in LanceDB, of which `homing store copy` makes a copy; "
            "a backup is of SQLite and PostgreSQL"
        )
    databases: dict[str, Path] = {}
    if isinstance(settings.database, Path) and settings.database.exists():
        databases[DATABASE] = settings.database
    elif not is_postgres(settings.database):
        raise NotFound(f"there is nothing in {settings.data} to back up; `homing where` names the data folder")
    files: dict[str, Path] = {}
    left_out = []
    for entry in sorted(settings.data.iterdir()) if settings.data.is_dir() else ():
        if entry.name == USERS and entry.is_dir():
            for folder in sorted(one for one in entry.iterdir() if one.is_dir()):
                databases |= {f"{USERS}/{folder.name}/{DATABASE}": folder / DATABASE}
                files |= {f"{USERS}/{folder.name}/{USER_FILE}": folder / USER_FILE}
        elif entry.name in FOLDERS and entry.is_dir():
            files |= {str(one.relative_to(settings.data)): one for one in _below(entry)}
        elif entry.name == DATABASE:
            databases.setdefault(DATABASE, entry)
        elif not entry.name.startswith(".") and not entry.name.endswith(DERIVED):
            left_out.append(entry.name)
    return _existing(databases), _existing(files), left_out


def _existing(found: dict[str, Path]) -> dict[str, Path]:
    return {name: file for name, file in found.items() if file.is_file()}


def _below(folder: Path) -> Iterator[Path]:
    """The files in a folder and those below it, in order; what links lead to is not part of it."""
    yield from sorted(one for one in folder.rglob("*") if one.is_file() and not one.is_symlink())


@contextmanager
def _made_aside(target: Path, source: Path | None = None) -> Iterator[Path]:
    """A folder to fill, which becomes the target in one step at the end of the block; if that fails, nothing is left.

    What a process that was killed has left of one is cleared away first.
    """
    target = target.absolute()
    if source is not None and source.absolute() in (target, *target.parents):
        raise InvalidArgument(f"{target} is inside the data folder; choose a place outside of it")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidArgument(f"{target} is not empty, and nothing is overwritten; name a new folder")
    aside = target.with_name(f".{target.name}.unfinished")
    lock = target.with_name(f".{target.name}.lock")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with WriteLock(lock, wait=0.0).held():
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(mode=0o700)
            try:
                yield aside
                for folder in (aside, *(one for one in aside.rglob("*") if one.is_dir())):
                    _sync(folder)
                if target.exists():
                    target.rmdir()
                aside.rename(target)
                _sync(target.parent)
            except BaseException:
                shutil.rmtree(aside, ignore_errors=True)
                raise
            finally:
                lock.unlink(missing_ok=True)
    except OSError as error:
        raise StoreReadOnly(
            f"{error.filename or target} cannot be read or written: {error.strerror}; choose another place"
        ) from error


class _Steps:
    """How far the whole is, from how far each file is."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def within(self, done: int, _: int) -> None:
        """So many bytes of the file at hand."""
        self._progress(min(self._done + done, self._total), self._total)

    def passed(self, count: int) -> None:
        """The file at hand, of so many bytes, is done."""
        self._done += count
        self.within(0, 0)


def _snapshot(file: Path, target: Path, report: _Steps) -> None:
    from homing.database.sqlite import SqliteDatabase
    from homing.database.sqlite.snapshot import snapshot

    with closing(SqliteDatabase(file)) as database:
        snapshot(database, target, report.within)
    report.passed(target.stat().st_size)


def _copy(file: Path, target: Path, report: _Steps) -> None:
    if file.is_symlink() or not file.is_file():
        raise StoreCorrupt(f"{file} is not there, or no file; take another backup", details={"file": file.name})
    private_file(target)
    shutil.copyfile(file, target)
    with target.open("rb") as written:
        os.fsync(written.fileno())
    report.passed(target.stat().st_size)


def _check(file: Path, name: str) -> list[str]:
    """What is wrong inside a store, a sentence each, with the name of its file."""
    with closing(open_store(f"sqlite:///{file}")) as store:
        return [f"{name}: {one}" for one in store.check()]


def _described(file: Path) -> dict[str, Any]:
    digest = hashlib.sha256()
    with file.open("rb") as content:
        for piece in iter(partial(content.read, CHUNK), b""):
            digest.update(piece)
    return {"bytes": file.stat().st_size, "sha256": digest.hexdigest()}


def _place(folder: Path, name: str) -> Path:
    """Where a file of a backup goes; it never leads out of the folder."""
    place = folder / name
    if ".." in place.parts or not place.is_relative_to(folder):
        raise StoreCorrupt(f"{LIST} names {name!r}, which is outside of the backup; take another one")
    for above in reversed(place.relative_to(folder).parents[:-1]):
        (folder / above).mkdir(mode=0o700, exist_ok=True)
    return place


def _read_list(source: Path) -> dict[str, Any]:
    try:
        made = json.loads((source / LIST).read_text(encoding="utf-8"))
        known = int(made["format"]) <= FORMAT and isinstance(made["files"], dict)
    except FileNotFoundError:
        raise NotFound(
            f"{source} holds no backup ({LIST} is missing); name a folder that `homing backup` made"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreCorrupt(f"{source / LIST} cannot be read ({error}); take another backup") from error
    if not known:
        raise StoreCorrupt(f"{source} was made by a newer Homing; upgrade Homing to restore it")
    found: dict[str, Any] = made
    return found


def _check_fits(settings: Settings, made: dict[str, Any]) -> None:
    """Refuse settings under which what is restored would not be what is opened."""
    dumped = made["postgres"]
    if is_postgres(settings.database):
        if dumped is None:
            raise InvalidArgument(
                "the store that is set is PostgreSQL, and this backup holds SQLite; restore it without HOMING_STORE, "
                "then bring it over with `homing store copy`"
            )
        if dumped["schema"] != _postgres(settings)[1]:
            raise InvalidArgument(f"this backup is of the schema {dumped['schema']!r}; name it with ?schema=…")
    elif dumped is not None:
        raise InvalidArgument("this backup is of a PostgreSQL server; set the store (HOMING_STORE) to an empty one")
    elif _in_lance(settings) or settings.database != settings.data / DATABASE:
        raise InvalidArgument("a backup is restored to the data folder; leave the store (HOMING_STORE) unset")


def _in_lance(settings: Settings) -> bool:
    return settings.store.startswith(("lance://", "s3://"))


def _postgres(settings: Settings) -> tuple[str, str]:
    """The address of the server without what is ours of it, and the schema."""
    address, options = postgres_options(str(settings.database))
    return address, str(options.get("schema", "homing"))


def _sync(folder: Path) -> None:
    """Have the names in a folder on the disk. Some systems cannot, and need not."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
