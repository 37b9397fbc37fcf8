"""A real server for the tests: started from packaged programs, or the one that HOMING_TEST_POSTGRES names."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import sql

from homing.stores.postgres.server import LocalServer
from homing.stores.postgres.store import PostgresStore

FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}


@dataclass(frozen=True)
class Database:
    """Where the tests work: `url` as an ordinary role, `admin_url` as one that may do anything."""

    url: str
    admin_url: str


@pytest.fixture(scope="session")
def database() -> Iterator[Database]:
    given = os.environ.get("HOMING_TEST_POSTGRES")
    if given:
        yield Database(given, given)
        return
    # Not pytest's folder: as root the server runs as somebody who may not enter it.
    folder = tempfile.mkdtemp(prefix="homing-test-postgres-")
    server = LocalServer(folder, settings=FAST)
    server.start()
    yield Database(server.url, server.admin_url)
    server.remove()
    shutil.rmtree(folder)


@pytest.fixture
def schema(database: Database) -> Iterator[str]:
    name = f"homing_{secrets.token_hex(6)}"
    yield name
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))


Opened = Callable[..., PostgresStore]


@pytest.fixture
def opened(database: Database, schema: str) -> Iterator[Opened]:
    """Opens stores on the schema of the test, and closes them."""
    stores: list[PostgresStore] = []

    def open_one(url: str | None = None, **options: object) -> PostgresStore:
        stores.append(PostgresStore(url or database.url, schema=schema, **options))  # type: ignore[arg-type]
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()
