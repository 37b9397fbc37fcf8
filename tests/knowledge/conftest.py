"""Knowledge bases on every store that there is: files, and a real server, with the rows of users fenced or not."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from homing.knowledge import KnowledgeBase
from homing.stores.postgres.store import PostgresStore
from homing.stores.registry import open_store
from homing.stores.store import Store
from homing.testing.fake import FakeEmbedder
from tests.conftest import Database
from tests.effort import SOAK

Open = Callable[..., KnowledgeBase]


@pytest.fixture(scope="session")
def new_database(database: Database) -> Callable[[], str]:
    """Makes an empty database and gives its address: what one test does to a store is nothing to another."""

    def make() -> str:
        name = f"k{secrets.token_hex(4)}"
        with psycopg.connect(database.admin_url, autocommit=True) as connection:
            owner = sql.Identifier(str(conninfo_to_dict(database.url)["user"]))
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), owner))
        inside = make_conninfo(database.admin_url, dbname=name)
        with psycopg.connect(inside, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        return database.url.rpartition("/")[0] + f"/{name}"

    return make


# Without the fence it is the store of the contract, and users are told apart by the same column.
@pytest.fixture(params=["sqlite", "postgres", "fenced postgres"] if SOAK else ["sqlite", "fenced postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        opened = open_store(f"sqlite:///{tmp_path / 'homing.db'}")
    else:
        database = request.getfixturevalue("database")
        opened = PostgresStore(
            database.url, schema=f"k_{secrets.token_hex(4)}", row_security=request.param.startswith("fenced")
        )
    yield opened
    opened.close()


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
def base(store: Store, embedder: FakeEmbedder) -> Open:
    """The knowledge base of a user."""
    return lambda user="alice": KnowledgeBase(user, store=store, embedder=embedder)


@pytest.fixture
def local(tmp_path: Path, embedder: FakeEmbedder) -> Iterator[Open]:
    """The same in a file, for what no store has a say in."""
    opened = open_store(tmp_path / "local.db")
    yield lambda user="alice": KnowledgeBase(user, store=opened, embedder=embedder)
    opened.close()
