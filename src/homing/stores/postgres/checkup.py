"""Whether the tables agree: every text with its hash, its words and its vectors, and counts that are right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homing.database.postgres.driver import Connection
from homing.errors import StoreCorrupt
from homing.records import text_hash
from homing.stores.postgres.rows import unescape
from homing.stores.postgres.schema import vector_table
from homing.stores.postgres.words import PostgresWordTables
from homing.stores.postings.segment import counted
from homing.text.terms import terms_in

PAGE = 1_000
NAMED = 5
"""Ids that a sentence names."""

# A user's view looks at that user's rows; the store itself at everybody's.
_MINE = "(%(user)s::text = '' OR x.user_id = %(user)s)"
_BELONGS_TO_NONE = "NOT EXISTS (SELECT FROM records r WHERE r.key = record AND r.user_id = x.user_id)"


def findings(connection: Connection, user: str) -> Iterator[str]:
    """What is wrong, a sentence each. Reads every text that may be seen: minutes for a million records."""
    tables = Tables(connection, user)
    yield from tables.miscounted("records", "records", "count(*) FROM records r WHERE r.collection = x.id")
    homeless = "collection NOT IN (SELECT id FROM collections)"
    yield from tables.stray("records", homeless, "records belong to no collection")
    yield from tables.stray("word_segments", homeless, "segments of the keyword index belong to no collection")
    yield from tables.wrong_texts()
    for _, _, model in without_vectors(connection):
        yield f"the vectors of {model!r} are gone: the extension vector was dropped"
    for space, model in connection.execute("SELECT id, model FROM spaces ORDER BY id").fetchall():
        table = vector_table(space)
        yield from tables.stray(table, _BELONGS_TO_NONE, f"vectors of {model!r} belong to no record")
        unknown = f"NOT EXISTS (SELECT FROM held h WHERE h.collection = x.collection AND h.space = {int(space)})"
        yield from tables.stray(table, unknown, f"vectors of {model!r} are unknown to their collection")
        yield from tables.outdated(table, f"vectors of {model!r} are of another text")
        counted = f"count(*) FROM {table} v WHERE v.collection = x.id"
        yield from tables.miscounted("embedded", "vectors", counted, f"x.space = {int(space)} AND")


def without_vectors(connection: Connection) -> list[tuple[int, int, str]]:
    """Number, width and model of each space whose table has no column for vectors: it went with the extension."""
    return connection.execute(
        "SELECT id, dimensions, model FROM spaces s WHERE NOT EXISTS (SELECT FROM pg_attribute a WHERE attname = "
        "'embedding' AND NOT attisdropped AND attrelid = to_regclass('vectors_' || s.id)) ORDER BY id"
    ).fetchall()


class Tables:
    """The rows of a user, or of everybody."""

    def __init__(self, connection: Connection, user: str) -> None:
        self._connection = connection
        self._user = user

    def miscounted(self, column: str, what: str, counted: str, of: str = "") -> Iterator[str]:
        """Collections whose tallies do not add up to what is there."""
        for name, tallied, there in self._rows(
            "SELECT name, tallied, there FROM (SELECT x.name, "
            f"(SELECT coalesce(sum(t.{column}), 0) FROM tallies t WHERE t.collection = x.id) AS tallied, "
            f"(SELECT {counted}) AS there "
            f"FROM collections x WHERE {of} {_MINE}) c WHERE tallied <> there ORDER BY name"
        ):
            yield f"collection {name!r} counts {tallied} {what} and has {there}"

    def stray(self, table: str, condition: str, message: str) -> Iterator[str]:
        """Rows that nothing leads to."""
        [(count,)] = self._rows(f"SELECT count(*) FROM {table} x WHERE {_MINE} AND {condition}")
        if count:
            yield f"{count} {message}"

    def outdated(self, table: str, message: str) -> Iterator[str]:
        """Vectors of another text than the one that is there."""
        found = self._rows(
            f"SELECT c.name, r.id FROM {table} x JOIN records r ON r.key = x.record JOIN collections c "
            f"ON c.id = r.collection WHERE {_MINE} AND (x.hash <> r.hash OR x.collection <> r.collection) ORDER BY 1, 2"
        )
        yield from _named([(collection, name) for collection, name in found], message)

    def wrong_texts(self) -> Iterator[str]:
        """Records whose text is not the one that was hashed, or whose words are not those of their text."""
        damaged: list[tuple[str, str]] = []
        wordless: list[tuple[str, str]] = []
        reworded: list[tuple[str, str]] = []
        stray = 0
        for number, collection in self._rows(f"SELECT x.id, x.name FROM collections x WHERE {_MINE} ORDER BY 1"):
            try:
                found = PostgresWordTables(self._connection, self._user).contents(number)
                indexed = {key: (length, counts) for key, length, counts in found}
            except StoreCorrupt:
                yield f"the keyword index of collection {collection!r} is damaged"
                continue
            for key, name, text, keywords, digest in self.texts(number):
                said, held = terms_in(text if keywords is None else keywords), indexed.pop(key, None)
                if bytes.fromhex(text_hash(text)) != digest:
                    # Which words it should have, nobody knows.
                    damaged.append((collection, name))
                elif held is None:
                    wordless.append((collection, name))
                elif held != (len(said), counted(said)):
                    reworded.append((collection, name))
            stray += len(indexed)
        yield from _named(damaged, "records do not have the text that was written")
        yield from _named(wordless, "records are missing from the keyword index")
        yield from _named(reworded, "records have words in the keyword index that are not their own")
        if stray:
            yield f"{stray} entries of the keyword index belong to no record"

    def texts(self, collection: int) -> Iterator[tuple[int, str, str, str | None, bytes]]:
        """The records of a collection by key: key, id, text, keywords, and the hash that the text should have."""
        after = -1
        while True:
            rows = self._rows(
                "SELECT x.key, x.id, x.escaped, x.text, x.keywords, x.hash FROM records x "
                f"WHERE {_MINE} AND x.collection = %(collection)s AND x.key > %(after)s ORDER BY x.key LIMIT %(page)s",
                collection=collection,
                after=after,
                page=PAGE,
            )
            for key, name, escaped, text, keywords, digest in rows:
                if escaped:
                    text, keywords = unescape(text), None if keywords is None else unescape(keywords)
                yield key, name, text, keywords, digest
            if len(rows) < PAGE:
                return
            after = rows[-1][0]

    def _rows(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, {"user": self._user, **values}, binary=True).fetchall()


def _named(found: list[tuple[str, str]], message: str) -> Iterator[str]:
    """A sentence about records, by collection and id, of which it names the first."""
    if found:
        listed = ", ".join(f"{name!r} of {collection!r}" for collection, name in sorted(found)[:NAMED])
        yield f"{len(found)} {message}: {listed}{', …' if len(found) > NAMED else ''}"
