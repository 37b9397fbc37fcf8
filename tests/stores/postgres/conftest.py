"""Stores on the real server of the tests (tests/conftest.py), and servers that may be stopped."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from homing.database.postgres.server import LocalServer
from homing.stores.postgres.store import PostgresStore
from tests.conftest import FAST, Database


@pytest.fixture(scope="module")
def server_of_module(folder_of_servers: Path) -> Iterator[LocalServer]:
    own = LocalServer(folder_of_servers / secrets.token_hex(4), settings=FAST)
    own.start()
    yield own
    own.remove()


@pytest.fixture
def server(server_of_module: LocalServer) -> LocalServer:
    """A server that may be stopped and started, running and empty when the test begins."""
    server_of_module.start()
    with psycopg.connect(server_of_module.admin_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS homing CASCADE")
    return server_of_module


@pytest.fixture
def schema(database: Database) -> Iterator[str]:
    name = f"homing_{secrets.token_hex(6)}"
    yield name
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))


@pytest.fixture
def opened(database: Database, schema: str) -> Iterator[Callable[..., PostgresStore]]:
    """Opens stores on the schema of the test, and closes them."""
    stores: list[PostgresStore] = []

    def open_one(url: str | None = None, **options: object) -> PostgresStore:
        stores.append(PostgresStore(url or database.url, schema=schema, **options))  # type: ignore[arg-type]
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[..., PostgresStore]) -> PostgresStore:
    """A store on an empty schema."""
    return opened()


@pytest.fixture
def admin(database: Database, schema: str) -> Iterator[psycopg.Connection]:
    """The superuser, looking at the schema of the test."""
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute("SELECT set_config('search_path', %s, false)", (f"{schema}, public",))
        yield connection
