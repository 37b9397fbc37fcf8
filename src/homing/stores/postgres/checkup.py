"""Whether the tables agree: every text with its hash, its words and its vectors, and counts that are right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homing.database.postgres.driver import Connection, sql
from homing.records import text_hash
from homing.stores.postgres.rows import unescape, words
from homing.stores.postgres.schema import vector_table

PAGE = 1_000
NAMED = 5
"""Ids that a sentence names."""


def findings(connection: Connection, user: str) -> Iterator[str]:
    """What is wrong, a sentence each. Reads every text that may be seen: minutes for a million records."""
    # A user's view looks at that user's rows; the store itself at everybody's.
    mine = sql.SQL("x.user_id = {}").format(sql.Literal(user)) if user else sql.SQL("true")
    yield from _counts(connection, mine, "records", "records", "records r WHERE r.collection = x.id")
    yield from _counts(connection, mine, "words", "words", "words w WHERE w.collection = x.id", "sum(w.length)")
    belongs_to_none = "NOT EXISTS (SELECT FROM records r WHERE r.key = record AND r.user_id = x.user_id)"
    yield from _stray(
        connection, mine, "records", "collection NOT IN (SELECT id FROM collections)", "records belong to no collection"
    )
    yield from _stray(connection, mine, "words", belongs_to_none, "entries of the keyword index belong to no record")
    yield from _texts(connection, mine)
    for space, model in connection.execute("SELECT id, model FROM spaces ORDER BY id").fetchall():
        table = vector_table(space)
        yield from _stray(connection, mine, table, belongs_to_none, f"vectors of {model!r} belong to no record")
        yield from _stray(
            connection,
            mine,
            table,
            f"NOT EXISTS (SELECT FROM held h WHERE h.collection = x.collection AND h.space = {space})",
            f"vectors of {model!r} are unknown to their collection",
        )
        yield from _vectors(connection, mine, table, model)
        yield from _counts(
            connection,
            sql.SQL("x.space = {} AND {}").format(sql.Literal(space), mine),
            "embedded",
            "vectors",
            f"{table} v WHERE v.collection = x.id",
        )


def _counts(
    connection: Connection, mine: sql.Composable, column: str, what: str, source: str, counted: str = "count(*)"
) -> Iterator[str]:
    """Collections whose tallies do not add up to what is there."""
    for name, tallied, there in connection.execute(
        sql.SQL(
            "SELECT name, tallied, there FROM (SELECT x.name, "
            f"(SELECT coalesce(sum(t.{column}), 0) FROM tallies t WHERE t.collection = x.id) AS tallied, "
            f"(SELECT coalesce({counted}, 0) FROM {source}) AS there "
            "FROM collections x WHERE {}) c WHERE tallied <> there ORDER BY name"
        ).format(mine)
    ).fetchall():
        yield f"collection {name!r} counts {tallied} {what} and has {there}"


def _stray(connection: Connection, mine: sql.Composable, table: str, condition: str, message: str) -> Iterator[str]:
    row = connection.execute(
        sql.SQL(f"SELECT count(*) FROM {table} x WHERE {{}} AND {condition}").format(mine)
    ).fetchone()
    if row is not None and row[0]:
        yield f"{row[0]} {message}"


def _texts(connection: Connection, mine: sql.Composable) -> Iterator[str]:
    """Records whose text is not the one that was hashed, or whose words are not those of their text."""
    damaged: list[tuple[str, str]] = []
    wordless: list[tuple[str, str]] = []
    reworded: list[tuple[str, str]] = []
    for collection, name, number, text, keywords, found, length, slots, counts in _pages(connection, mine):
        if bytes.fromhex(text_hash(text)) != found:
            damaged.append((collection, name))
        if length is None:
            wordless.append((collection, name))
            continue
        expected = words(text if keywords is None else keywords)
        if (length, slots, counts) != (expected.length, *(one.tolist() for one in expected.placed(number))):
            reworded.append((collection, name))
    yield from _named(damaged, "records do not have the text that was written")
    yield from _named(wordless, "records are missing from the keyword index")
    yield from _named(reworded, "records have words in the keyword index that are not their own")


def _pages(connection: Connection, mine: sql.Composable) -> Iterator[tuple[Any, ...]]:
    after = -1
    while True:
        rows = connection.execute(
            sql.SQL(
                "SELECT x.key, c.name, x.id, c.id, x.escaped, x.text, x.keywords, x.hash, w.length, w.slots, w.counts "
                "FROM records x JOIN collections c ON c.id = x.collection LEFT JOIN words w ON w.record = x.key "
                "WHERE {} AND x.key > %s ORDER BY x.key LIMIT %s"
            ).format(mine),
            (after, PAGE),
            binary=True,
        ).fetchall()
        for _, collection, name, number, escaped, text, keywords, *others in rows:
            if escaped:
                text, keywords = unescape(text), None if keywords is None else unescape(keywords)
            yield collection, name, number, text, keywords, *others
        if len(rows) < PAGE:
            return
        after = rows[-1][0]


def _vectors(connection: Connection, mine: sql.Composable, table: str, model: str) -> Iterator[str]:
    """Vectors of another text than the one that is there."""
    outdated = connection.execute(
        sql.SQL(
            f"SELECT c.name, r.id FROM {table} x JOIN records r ON r.key = x.record JOIN collections c "
            "ON c.id = r.collection WHERE {} AND (x.hash <> r.hash OR x.collection <> r.collection) ORDER BY 1, 2"
        ).format(mine)
    ).fetchall()
    yield from _named(
        [(collection, name) for collection, name in outdated], f"vectors of {model!r} are of another text"
    )


def _named(found: list[tuple[str, str]], message: str) -> Iterator[str]:
    """A sentence about records, by collection and id, of which it names the first."""
    if found:
        listed = ", ".join(f"{name!r} of {collection!r}" for collection, name in sorted(found)[:NAMED])
        yield f"{len(found)} {message}: {listed}{', …' if len(found) > NAMED else ''}"
