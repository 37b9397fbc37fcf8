"""A place for every test, of both kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import Database
from tests.langchain.places import Place, StorePlace, TablePlace


@pytest.fixture(params=["store", "table"])
def place(request: pytest.FixtureRequest, database: Database) -> Iterator[Place]:
    made: Place = StorePlace(database) if request.param == "store" else TablePlace(database)
    yield made
    made.close()


@pytest.fixture
def table(database: Database) -> Iterator[TablePlace]:
    made = TablePlace(database)
    yield made
    made.close()


@pytest.fixture
def store(database: Database) -> Iterator[StorePlace]:
    made = StorePlace(database)
    yield made
    made.close()
