"""A schema of its own for each test on the real server of the tests (tests/conftest.py)."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from tests.conftest import Database


@pytest.fixture
def schema(database: Database) -> Iterator[str]:
    name = f"homing_{secrets.token_hex(6)}"
    yield name
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))
