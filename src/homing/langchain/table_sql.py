"""The statements of both legs on a table. The condition on the user is written here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homing.langchain.source import Filter
from homing.langchain.table import Table, literal, quoted
from homing.langchain.table_filter import FilterSql
from homing.text.folding import spellings

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


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL with named parameters, and their values."""

    sql: str
    values: Mapping[str, Any] = field(default_factory=dict)


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

    def check(self, narrowed: Filter | None) -> None:
        """Raise InvalidArgument for a filter that means nothing."""
        FilterSql(self._field).compile(narrowed or {})

    def session(self, deadline: float, *, scans: bool) -> Statement:
        """Settings of the transaction: how long the server may work, and for policies who asks."""
        settings = "set_config('statement_timeout', :timeout, true), set_config('homing.user_id', :user, true)"
        if scans:
            # Without it an index returns what it finds first, and the condition on the user throws that away.
            settings += ", set_config('hnsw.iterative_scan', 'strict_order', true)"
        milliseconds = str(max(1, round(deadline * 1000)))
        return Statement(f"SELECT {settings}", {"timeout": milliseconds, "user": str(self.user_id)})

    def exact(self, vector: str, limit: int, narrowed: Filter | None, *, few: int | None) -> Statement:
        """The nearest rows by comparing all, or the first `few` of them; `many` tells how many those were."""
        where, values = self._where(narrowed)
        bound = "" if few is None else " LIMIT :few"
        sql = (
            f"WITH own AS MATERIALIZED (SELECT {self._shown}, {self._cosine} AS cosine FROM {self.table.name} "
            f"WHERE {where}{bound}) "
            "SELECT own.*, (SELECT count(*) FROM own) AS many FROM own ORDER BY cosine DESC, id LIMIT :limit"
        )
        return Statement(sql, {**values, "vector": vector, "limit": limit} | ({} if few is None else {"few": few}))

    def indexed(self, vector: str, limit: int, narrowed: Filter | None) -> Statement:
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
        where, values = self._where(None)
        sql = (
            f"SELECT CAST({self.table.id} AS text) AS id, {self._cosine} AS cosine FROM {self.table.name} "
            f"WHERE {where} AND CAST({self.table.id} AS text) = ANY(CAST(:ids AS text[]))"
        )
        return Statement(sql, {**values, "vector": vector, "ids": list(ids)})

    def keywords(
        self, keywords: Sequence[str], limit: int, narrowed: Filter | None, *, by_relevance: bool
    ) -> Statement:
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

    def _where(self, narrowed: Filter | None) -> tuple[str, dict[str, Any]]:
        mine, values = self._mine()
        if not narrowed:
            return mine, values
        compiled = FilterSql(self._field)
        condition = compiled.compile(narrowed)
        # In this order and no other: what somebody else wrote must not even be able to fail our comparisons.
        return f"{mine} AND CASE WHEN {mine} THEN {condition} ELSE false END", {**values, **compiled.values}

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
