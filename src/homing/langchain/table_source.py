"""The rows of one user in the table of a `PGVectorStore`, and the statements of both legs.

The condition on the user is written here and nowhere else.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from homing.embedders.provider import EmbeddingProvider
from homing.engine.source import Nearest
from homing.errors import InvalidArgument, StoreError, Timeout
from homing.langchain.filters import FilterSql, Tree, filter_tree
from homing.langchain.options import HybridRetrieverOptions
from homing.langchain.source import Place, UserSource
from homing.langchain.table import Row, Table, Work, column_types, fetch, forget, known_types, literal, quoted
from homing.records import VectorRecord
from homing.stores.store import Measured, Worded, Words
from homing.text.folding import spellings
from homing.vectors import Vector, as_vector

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

log = logging.getLogger(__name__)

FEW = 2_000
"""Rows of a user up to which all are compared: exact, and faster than an index that must pass by everybody else's."""

# Escapes that JSON may hold and text may not: NUL, and halves of surrogate pairs. In one row of anybody's metadata they
# make every reading of JSON fail; a search that met one reads JSON with them replaced.
_UNREADABLE = (
    r"\\u0000"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_READABLE = r"\\ufffd"
UNREADABLE_STATES = ("22P02", "22P05")


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
        self._filter = filter_tree(options.filter or {})
        sql.narrowed(self._filter)
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
        rows = self._run(lambda sql: sql.exact(vector, limit, self._filter, few=FEW))
        if rows and rows[0]["many"] >= FEW:
            rows = self._run(lambda sql: sql.indexed(vector, limit, self._filter), scans=True)
            if len(rows) < limit:
                rows = self._run(lambda sql: sql.exact(vector, limit, self._filter, few=None), scans=True)
        self._keep(rows)
        return Nearest({row["id"]: float(row["cosine"]) for row in rows}, self._asked, self._embedder.scale)

    def by_keywords(self, limit: int) -> Words:
        """The rows with most of the keywords, or with the rarest."""
        keywords, by_relevance = self.keywords, self.options.keyword_ranking == "relevance"

        def statement(sql: TableSql) -> Statement:
            found = sql.keywords(keywords, limit, self._filter, by_relevance=by_relevance)
            log.debug("%s", found.sql, extra={"sql": found.sql})
            return found

        rows = self._run(statement)
        self._keep(rows)
        for row in rows:
            self.held[row["id"]] = tuple(word for word, there in zip(keywords, row["held"], strict=True) if there)
        return Words(tuple(Worded(row["id"], float(row["matched"])) for row in rows))

    def measure(self, ids: Sequence[str], vector: Vector | None) -> list[Measured]:
        """How near the rows with these ids are."""
        assert vector is not None
        rows = self._run(lambda sql: sql.cosines(_written(vector), ids))
        return [Measured(row["id"], float(row["cosine"]), 0.0) for row in rows]

    def _run(self, statement: Callable[[TableSql], Statement], *, scans: bool = False) -> Sequence[Row]:
        # A policy must be told who asks, and a scan how to go on and when to end; else the statement stands for itself.
        alone = not scans and known_types(self._table).get("row security") == "false"
        deadline = self.left

        def prepared(careful: bool) -> Work[Sequence[Row]]:
            async def run(connection: AsyncConnection) -> Sequence[Row]:
                types = await column_types(connection, self._table)
                sql = replace(self._sql, types=types, careful=careful)
                if not alone:
                    version = tuple(
                        int(part) for part in types.get("extension vector", "").split(".") if part.isdigit()
                    )
                    iterative = scans and version >= (0, 8)
                    await fetch(connection, *sql.session(deadline, scans=iterative))
                return await fetch(connection, *statement(sql))

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


class Statement(NamedTuple):
    """SQL with named parameters, and their values."""

    sql: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TableSql:
    """Writes statements for one user's rows of a table.

    `types` are the types of the columns. `careful` reads metadata that PostgreSQL would refuse to read.
    """

    table: Table
    user_id: int | str
    user_key: str
    types: Mapping[str, str]
    careful: bool = False

    def narrowed(self, tree: Tree) -> FilterSql:
        """A filter on these rows. Raises InvalidArgument for one that means nothing."""
        return FilterSql(tree, self._field)

    def session(self, deadline: float, *, scans: bool) -> Statement:
        """Settings of the transaction: how long the server may work, and for policies who asks."""
        settings = "set_config('statement_timeout', :timeout, true), set_config('homing.user_id', :user, true)"
        if scans:
            # Without it an index returns what it finds first, and the condition on the user throws that away.
            settings += ", set_config('hnsw.iterative_scan', 'strict_order', true)"
        milliseconds = str(max(1, round(deadline * 1000)))
        return Statement(f"SELECT {settings}", {"timeout": milliseconds, "user": str(self.user_id)})

    def exact(self, vector: str, limit: int, narrowed: Tree, *, few: int | None) -> Statement:
        """The nearest rows by comparing all, or the first `few` of them; `many` tells how many those were."""
        where, values = self._where(narrowed)
        bound = "" if few is None else " LIMIT :few"
        sql = (
            f"WITH own AS MATERIALIZED (SELECT {self._shown}, {self._cosine} AS cosine FROM {self.table.name} "
            f"WHERE {where}{bound}) "
            "SELECT own.*, (SELECT count(*) FROM own) AS many FROM own ORDER BY cosine DESC, id LIMIT :limit"
        )
        return Statement(sql, {**values, "vector": vector, "limit": limit} | ({} if few is None else {"few": few}))

    def indexed(self, vector: str, limit: int, narrowed: Tree) -> Statement:
        """The nearest rows by the index, if the table has one."""
        where, values = self._where(narrowed)
        order = f"{self.table.embedding} {self.table.operator} CAST(:vector AS vector)"
        sql = (
            f"SELECT {self._shown}, {self._cosine} AS cosine FROM {self.table.name} "
            f"WHERE {where} ORDER BY {order} LIMIT :limit"
        )
        return Statement(sql, {**values, "vector": vector, "limit": limit})

    def cosines(self, vector: str, ids: Sequence[str]) -> Statement:
        """How near the rows with these ids are."""
        where, values = self._where({})
        sql = (
            f"SELECT CAST({self.table.id} AS text) AS id, {self._cosine} AS cosine FROM {self.table.name} "
            f"WHERE {where} AND CAST({self.table.id} AS text) = ANY(CAST(:ids AS text[]))"
        )
        return Statement(sql, {**values, "vector": vector, "ids": list(ids)})

    def keywords(self, keywords: Sequence[str], limit: int, narrowed: Tree, *, by_relevance: bool) -> Statement:
        """The rows that contain keywords, by how many (`held` says which) and how rare those are, or the other way."""
        where, values = self._where(narrowed)
        patterns = {f"k{at}": [_pattern(one) for one in spellings(word)] for at, word in enumerate(keywords)}
        # ILIKE is dear, so each row is asked once for each keyword, and never again for whether it has any.
        held = ", ".join(f"CAST({self.table.content} ILIKE ANY(CAST(:{name} AS text[])) AS int)" for name in patterns)
        first, second = ("relevance", "matched") if by_relevance else ("matched", "relevance")
        # Rare among the rows that hold any of them: to know it among all, all would have to be read.
        sql = (
            f"WITH looked AS MATERIALIZED (SELECT {self._shown}, ARRAY[{held}] AS held FROM {self.table.name} "
            f"WHERE {where}), own AS MATERIALIZED (SELECT * FROM looked WHERE 1 = ANY(held)), "
            "rare AS (SELECT k.place, ln(1 + (SELECT count(*) FROM own) / (0.5 + sum(k.there))) AS weight "
            "FROM own, unnest(own.held) WITH ORDINALITY AS k(there, place) GROUP BY k.place), "
            "counted AS (SELECT own.id, sum(k.there) AS matched, sum(k.there * rare.weight) AS relevance "
            "FROM own, unnest(own.held) WITH ORDINALITY AS k(there, place) JOIN rare USING (place) GROUP BY own.id) "
            "SELECT own.*, counted.matched FROM own JOIN counted USING (id) "
            f"ORDER BY counted.{first} DESC, counted.{second} DESC, own.id LIMIT :limit"
        )
        return Statement(sql, {**values, **patterns, "limit": limit})

    @property
    def _shown(self) -> str:
        metadata = "NULL" if self.table.json is None else f"CAST({self.table.json} AS text)"
        columns = "".join(
            f", CAST(to_jsonb({column}) AS text) AS {quoted('column ' + name)}"
            for name, column in self.table.columns.items()
        )
        return f"CAST({self.table.id} AS text) AS id, {self.table.content} AS content, {metadata} AS metadata{columns}"

    @property
    def _cosine(self) -> str:
        return f"1 - ({self.table.embedding} <=> CAST(:vector AS vector))"

    def _where(self, narrowed: Tree) -> tuple[str, dict[str, Any]]:
        mine, values = self._mine()
        if not narrowed:
            return mine, values
        condition = self.narrowed(narrowed)
        # In this order and no other: what somebody else wrote must not even be able to fail our comparisons.
        return f"{mine} AND CASE WHEN {mine} THEN {condition.sql} ELSE false END", {**values, **condition.values}

    def _mine(self) -> tuple[str, dict[str, Any]]:
        column = self.table.columns.get(self.user_key)
        if column is not None:
            own = f"{column} = CAST(CAST(:owner AS text) AS {self.types[self.user_key]})"
            return own, {"owner": str(self.user_id)}
        # The text finds the rows, by an index if there is one; the type tells 1 from "1" and from true.
        kind = "number" if isinstance(self.user_id, int) else "string"
        typeof = "json_typeof" if self._json_type == "json" else "jsonb_typeof"
        key = literal(self.user_key)
        own = f"{self._metadata} ->> {key} = CAST(:owner AS text) AND {typeof}({self._metadata} -> {key}) = '{kind}'"
        return f"({own})", {"owner": str(self.user_id)}

    @property
    def _json_type(self) -> str:
        return "json" if self.careful else self.types.get("", "json")

    @property
    def _metadata(self) -> str:
        if not self.careful:
            return str(self.table.json)
        return f"CAST(regexp_replace(CAST({self.table.json} AS text), '{_UNREADABLE}', '{_READABLE}', 'g') AS json)"

    def _field(self, key: str, parameter: str) -> str:
        column = self.table.columns.get(key)
        if column is not None:
            return f"to_jsonb({column})"
        if self.table.json is None:
            return "CAST(NULL AS jsonb)"
        return f"to_jsonb({self._metadata} -> CAST(:{parameter} AS text))"


def _pattern(word: str) -> str:
    """What ILIKE looks for; the word is data, whatever signs it holds."""
    return "%" + word.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_") + "%"


def _written(vector: Vector) -> str:
    return "[" + ",".join(map(repr, vector.tolist())) + "]"
