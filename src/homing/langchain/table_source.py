"""The rows of one user in the table of a `PGVectorStore`."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from homing.embedders.provider import EmbeddingProvider
from homing.errors import InvalidArgument, StoreError
from homing.langchain.embeddings import ask
from homing.langchain.library import Embeddings
from homing.langchain.source import Asked, Filter, Found, Words
from homing.langchain.table import Row, Table, Work, fetch
from homing.langchain.table_sql import FEW, UNREADABLE_STATES, Statement, TableSql

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

log = logging.getLogger(__name__)

_TYPES = (
    "SELECT a.attname AS name, format_type(a.atttypid, NULL) AS type FROM pg_attribute a "
    "WHERE a.attrelid = to_regclass(:table) AND a.attnum > 0 AND NOT a.attisdropped "
    "UNION ALL SELECT 'extension vector', extversion FROM pg_extension WHERE extname = 'vector' "
    "UNION ALL SELECT 'row security', CAST(relrowsecurity AS text) FROM pg_class WHERE oid = to_regclass(:table)"
)


class TableSource:
    """One user's rows of a table; the user stands in the metadata under `user_key`, exactly as given, type included."""

    def __init__(
        self, table: Table, user_id: int | str, user_key: str, embeddings: EmbeddingProvider | Embeddings
    ) -> None:
        if not user_key or "\0" in user_key:
            raise InvalidArgument(f"user_key names the metadata that says whose a row is; got {user_key!r}")
        if table.json is None and user_key not in table.columns:
            raise InvalidArgument(
                f"table {table.label} has no metadata {user_key!r}; its columns: {', '.join(table.columns)}"
            )
        self._table = table
        self._user_id = user_id
        self._user_key = user_key
        self._embeddings = embeddings
        self._scans = False

    @property
    def collection(self) -> str:
        """The table."""
        return self._table.label

    def check(self, narrowed: Filter | None) -> None:
        """Raise InvalidArgument for a filter that means nothing."""
        TableSql(self._table, self._user_id, self._user_key, {}).check(narrowed)

    def ask(self, query: str) -> Asked:
        """The query, by the store's embeddings or by those that the retriever was given."""
        return ask(self._embeddings, query)

    def nearest(self, asked: Asked, limit: int, narrowed: Filter | None, *, deadline: float) -> list[Found]:
        """The nearest rows. Of a user with few, all are compared; the others' by the index, if it finds enough."""
        vector = _written(asked)

        async def few(connection: AsyncConnection, sql: TableSql) -> Sequence[Row]:
            return await _fetch(connection, sql.exact(vector, limit, narrowed, few=FEW))

        async def many(connection: AsyncConnection, sql: TableSql) -> Sequence[Row]:
            rows = await _fetch(connection, sql.indexed(vector, limit, narrowed))
            if len(rows) == limit:
                return rows
            return await _fetch(connection, sql.exact(vector, limit, narrowed, few=None))

        rows = self._run(few, deadline)
        if rows and rows[0]["many"] >= FEW:
            rows = self._run(many, deadline, scans=True)
        found = [self._found(row, cosine=float(row["cosine"])) for row in rows]
        return sorted(found, key=lambda one: (-(one.cosine or 0.0), one.id))

    def matching(self, words: Words, limit: int, narrowed: Filter | None, *, deadline: float) -> list[Found]:
        """The rows with most of the keywords, or with the rarest."""

        async def work(connection: AsyncConnection, sql: TableSql) -> Sequence[Row]:
            statement = sql.keywords(words, limit, narrowed)
            log.debug("%s", statement.sql, extra={"sql": statement.sql})
            return await _fetch(connection, statement)

        return [
            self._found(
                row,
                matched=tuple(word for word, there in zip(words.keywords, row["held"], strict=True) if there),
                count=float(row["matched"]),
            )
            for row in self._run(work, deadline)
        ]

    def cosines(self, asked: Asked, ids: Sequence[str], *, deadline: float) -> Mapping[str, float]:
        """How near the rows with these ids are."""

        async def work(connection: AsyncConnection, sql: TableSql) -> Sequence[Row]:
            return await _fetch(connection, sql.cosines(_written(asked), ids))

        return {row["id"]: float(row["cosine"]) for row in self._run(work, deadline)}

    def _run(self, work: Any, deadline: float, *, scans: bool = False) -> Sequence[Row]:
        # A policy must be told who asks, and a scan how to go on; else the statement stands for itself.
        alone = not scans and _known(self._table).get("row security") == "false"

        def prepared(careful: bool) -> Work[Sequence[Row]]:
            async def run(connection: AsyncConnection) -> Sequence[Row]:
                sql = await self._sql(connection)
                if not alone:
                    await _fetch(connection, sql.session(deadline, scans=scans and self._scans))
                rows: Sequence[Row] = await work(connection, replace(sql, careful=careful))
                return rows

            return run

        try:
            return self._table.run(prepared(False), deadline=deadline, one_statement=alone)
        except StoreError as error:
            state = str(error.details.get("sqlstate", ""))
            if state.startswith("42"):
                # The statement does not fit the table: it may be another than the one that was looked up.
                forget(self._table)
            if state not in UNREADABLE_STATES:
                raise
            log.warning("table %s holds metadata that cannot be read as text; reading it carefully", self._table.label)
            return self._table.run(prepared(True), deadline=deadline, one_statement=alone)

    async def _sql(self, connection: AsyncConnection) -> TableSql:
        types = await _types(connection, self._table)
        self._scans = _version(types.get("extension vector", "")) >= (0, 8)
        return TableSql(self._table, self._user_id, self._user_key, types)

    def _found(
        self, row: Row, *, cosine: float | None = None, matched: tuple[str, ...] = (), count: float = 0.0
    ) -> Found:
        metadata = json.loads(row["metadata"]) if row["metadata"] else {}
        if not isinstance(metadata, dict):
            metadata = {}
        for name in self._table.columns:
            value = row[f"column {name}"]
            if value is not None:
                metadata[name] = json.loads(value)
        return Found(row["id"], row["content"], metadata, cosine, matched, count)


REMEMBERED = 60.0
"""Seconds after which a table is looked up again: somebody may have put a fence around it."""

_seen: WeakKeyDictionary[AsyncEngine, dict[str, tuple[float, dict[str, str]]]] = WeakKeyDictionary()
# The same for every user, so that a retriever for one request need not ask.


def forget(table: Table) -> None:
    """Look the table up again before the next search."""
    _seen.get(table.engine, {}).pop(table.name, None)


def _known(table: Table) -> dict[str, str]:
    until, types = _seen.get(table.engine, {}).get(table.name, (0.0, {}))
    return types if time.monotonic() < until else {}


async def _types(connection: AsyncConnection, table: Table) -> dict[str, str]:
    """The types of the columns by name, that of the JSON under no name; the version of pgvector, and row security."""
    if types := _known(table):
        return types
    rows = await _fetch(connection, Statement(_TYPES, {"table": table.name.replace("\\:", ":")}))
    types = {row["name"]: row["type"] for row in rows}
    if "row security" not in types:
        raise StoreError(f"there is no table {table.label}; make it with init_vectorstore_table")
    if table.json is not None:
        types[""] = types.get(table.json[1:-1].replace('""', '"').replace("\\:", ":"), "json")
    _seen.setdefault(table.engine, {})[table.name] = (time.monotonic() + REMEMBERED, types)
    return types


async def _fetch(connection: AsyncConnection, statement: Statement) -> Sequence[Row]:
    return await fetch(connection, statement.sql, statement.values)


def _written(asked: Asked) -> str:
    return "[" + ",".join(repr(float(one)) for one in asked.vector) + "]"


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
