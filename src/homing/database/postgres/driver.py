"""psycopg, the one library this package stands on; where it is missing, the extra that brings it is named."""

from __future__ import annotations

from typing import Any

from homing.errors import MissingExtra

try:
    import psycopg
    from psycopg import sql
except ModuleNotFoundError as error:
    raise MissingExtra(
        "a PostgreSQL store needs psycopg; run: pip install 'homing[postgres]'", details={"extra": "postgres"}
    ) from error

__all__ = ["Connection", "connect", "psycopg", "sql"]

CONNECT_TIMEOUT = 10
"""Seconds after which a host that does not answer is given up; libpq counts whole ones."""

Connection = psycopg.Connection[tuple[Any, ...]]


def connect(url: str) -> Connection:
    """A connection on which every statement is its own transaction, unless one is begun."""
    return psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_TIMEOUT, application_name="homing")
