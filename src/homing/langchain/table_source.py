"""The rows of one user in the table of a `PGVectorStore`."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from homing.embedders.provider import EmbeddingProvider
from homing.engine.source import Nearest
from homing.errors import InvalidArgument, StoreError, Timeout
from homing.langchain.options import HybridRetrieverOptions
from homing.langchain.source import Place, UserSource
from homing.langchain.table import Row, Table, Work, fetch
from homing.langchain.table_sql import FEW, UNREADABLE_STATES, Statement, TableSql
from homing.records import VectorRecord
from homing.stores.store import Measured, Worded, Words
from homing.vectors import Vector, as_vector

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

log = logging.getLogger(__name__)

_TYPES = (
    "SELECT a.attname AS name, format_type(a.atttypid, NULL) AS type FROM pg_attribute a "
    "WHERE a.attrelid = to_regclass(:table) AND a.attnum > 0 AND NOT a.attisdropped "
    "UNION ALL SELECT 'extension vector', extversion FROM pg_extension WHERE extname = 'vector' "
    "UNION ALL SELECT 'row security', CAST(relrowsecurity AS text) FROM pg_class WHERE oid = to_regclass(:table)"
)


def rows_of(table: Table, user_id: int | str, user_key: str, embedder: EmbeddingProvider) -> Place:
    """One user's rows of a table; the user stands in the metadata under `user_key`, exactly as given, type included."""
    if not user_key or "\0" in user_key:
        raise InvalidArgument(f"user_key names the metadata that says whose a row is; got {user_key!r}")
    if table.json is None and user_key not in table.columns:
        raise InvalidArgument(
            f"table {table.label} has no metadata {user_key!r}; its columns: {', '.join(table.columns)}"
        )
    return partial(TableSource, TableSql(table, user_id, user_key, {}), embedder)


class TableSource(UserSource):
    """A query put to a table. Its rows come with the legs, so nothing is read afterwards."""

    def __init__(self, sql: TableSql, embedder: EmbeddingProvider, query: str, options: HybridRetrieverOptions) -> None:
        super().__init__(query, options, sql.user_id, sql.table.label)
        sql.check(options.filter)
        self._sql = sql
        self._table = sql.table
        self._embedder = embedder
        self._asked: Vector | None = None

    def by_vector(self, limit: int) -> Nearest:
        """The nearest rows. Of a user with few, all are compared; the others' by the index, if it finds enough."""
        if self._asked is None:
            self._asked = as_vector(self._embedder.embed([self.query], kind="query")[0])
        if self.is_late:
            # Nobody waits for this leg any more; the server need not work for it.
            raise Timeout(f"the query was embedded after the deadline of {self.options.deadline:g} s")
        vector = _written(self._asked)

        async def few(connection: AsyncConnection, sql: TableSql) -> Sequence[Row]:
            return await _fetch(connection, sql.exact(vector, limit, self.options.filter, few=FEW))

        async def many(connection: AsyncConnection, sql: TableSql) -> Sequence[Row]:
            rows = await _fetch(connection, sql.indexed(vector, limit, self.options.filter))
            if len(rows) == limit:
                return rows
            return await _fetch(connection, sql.exact(vector, limit, self.options.filter, few=None))

        rows = self._run(few)
        if rows and rows[0]["many"] >= FEW:
            rows = self._run(many, scans=True)
        self._keep(rows)
        return Nearest({row["id"]: float(row["cosine"]) for row in rows}, self._asked, self._embedder.scale)

    def by_keywords(self, limit: int) -> Words:
        """The rows with most of the keywords, or with the rarest."""
        keywords, by_relevance = self.keywords, self.options.keyword_ranking == "relevance"

        async def work(connection: AsyncConnection, sql: TableSql) -> Sequence[Row]:
            statement = sql.keywords(keywords, limit, self.options.filter, by_relevance=by_relevance)
            log.debug("%s", statement.sql, extra={"sql": statement.sql})
            return await _fetch(connection, statement)

        rows = self._run(work)
        self._keep(rows)
        for row in rows:
            self.held[row["id"]] = tuple(word for word, there in zip(keywords, row["held"], strict=True) if there)
        return Words(tuple(Worded(row["id"], float(row["matched"])) for row in rows))

    def measure(self, ids: Sequence[str], vector: Vector | None) -> list[Measured]:
        """How near the rows with these ids are."""
        assert vector is not None
        written = _written(vector)

        async def work(connection: AsyncConnection, sql: TableSql) -> Sequence[Row]:
            return await _fetch(connection, sql.cosines(written, ids))

        return [Measured(row["id"], float(row["cosine"]), 0.0) for row in self._run(work)]

    def _run(self, work: Any, *, scans: bool = False) -> Sequence[Row]:
        # A policy must be told who asks, and a scan how to go on; else the statement stands for itself.
        alone = not scans and _known(self._table).get("row security") == "false"
        deadline = self.left

        def prepared(careful: bool) -> Work[Sequence[Row]]:
            async def run(connection: AsyncConnection) -> Sequence[Row]:
                types = await _types(connection, self._table)
                sql = replace(self._sql, types=types, careful=careful)
                if not alone:
                    iterative = scans and _version(types.get("extension vector", "")) >= (0, 8)
                    await _fetch(connection, sql.session(deadline, scans=iterative))
                rows: Sequence[Row] = await work(connection, sql)
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

    def _keep(self, rows: Sequence[Row]) -> None:
        for row in rows:
            metadata = json.loads(row["metadata"]) if row["metadata"] else {}
            if not isinstance(metadata, dict):
                metadata = {}
            columns = {name: row[f"column {name}"] for name in self._table.columns}
            metadata |= {name: json.loads(value) for name, value in columns.items() if value is not None}
            self.rows[row["id"]] = VectorRecord(row["id"], self.collection, None, metadata, row["content"])


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


def _written(vector: Vector) -> str:
    return "[" + ",".join(map(repr, vector.tolist())) + "]"


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
