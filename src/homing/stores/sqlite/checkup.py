"""Whether the parts of a store agree: for every record one entry in each index, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import apsw
import numpy as np

from homing.database.sqlite.database import rows
from homing.records import text_hash
from homing.stores.sqlite import keywords, segments
from homing.stores.sqlite.batch import checksum, read_text
from homing.stores.sqlite.schema import vector_table
from homing.text.tokens import tokens


def findings(connection: apsw.Connection) -> Iterator[str]:
    """What is wrong, a sentence each. Reads everything: seconds for a million records."""
    keywords.look_again(connection)
    damage = [text for (text,) in rows(connection, "PRAGMA quick_check(5)") if text != "ok"]
    if damage:
        yield f"the file is damaged: {'; '.join(damage)}"
        return
    yield from _records(connection)
    for collection, name in rows(connection, "SELECT id, name FROM collections WHERE name IS NOT NULL"):
        yield from _texts(connection, collection, name)
    for space, model, dimensions in rows(connection, "SELECT id, model, dimensions FROM spaces"):
        yield from _vectors(connection, space, model)
        yield from _outdated(connection, space, model)
        for collection, name in rows(
            connection,
            "SELECT c.id, c.name FROM matrices m JOIN collections c ON c.id = m.collection WHERE m.space = ?",
            (space,),
        ):
            yield from _codes(connection, collection, name, space, dimensions)


def sizes(connection: apsw.Connection) -> dict[str, int]:
    """Bytes by what they hold: texts, vectors, codes, keywords, filters, and everything else."""
    found = dict.fromkeys(("texts", "vectors", "codes", "keywords", "filters", "other"), 0)
    for name, size in rows(connection, "SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE"):
        found[next((part for start, part in _PARTS.items() if start in name), "other")] += size
    return found


_PARTS = {
    "records": "texts",
    "vectors_": "vectors",
    "embeddings": "vectors",
    "segments": "codes",
    "removals": "codes",
    "keywords_": "keywords",
    "attributes": "filters",
}


def _records(connection: apsw.Connection) -> Iterator[str]:
    for name, counted, there in rows(
        connection,
        "SELECT c.name, c.records, (SELECT count(*) FROM records r WHERE r.collection = c.id) AS there "
        "FROM collections c WHERE c.records <> there",
    ):
        yield f"collection {name!r} counts {counted} records and has {there}"
    lost = _number(connection, "records WHERE collection NOT IN (SELECT id FROM collections)")
    if lost:
        yield f"{lost} records belong to no collection"
    stray = _number(connection, "attributes WHERE record NOT IN (SELECT key FROM records)")
    if stray:
        yield f"{stray} attributes belong to no record"
    stray = _number(connection, "embeddings WHERE record NOT IN (SELECT key FROM records)")
    if stray:
        yield f"{stray} vectors belong to no record"


def _texts(connection: apsw.Connection, collection: int, name: str) -> Iterator[str]:
    """Whether each row is what was written, and the keyword index holds the words of each text and no others."""
    indexed = _indexed(connection, collection)
    for key, record, metadata, keywords_, text, digest, guard in connection.execute(
        "SELECT key, id, metadata, keywords, text, hash, checksum FROM records WHERE collection = ?", (collection,)
    ):
        try:
            whole = read_text(text)
            intact = text_hash(whole) == digest and checksum(metadata, keywords_) == guard
        except UnicodeError:
            intact = False
        held = indexed.pop(key, Counter())
        if not intact:
            yield f"record {record!r} of collection {name!r} is damaged"
        elif held != Counter(tokens(whole if keywords_ is None else read_text(keywords_))):
            yield f"the keyword index does not hold the words of record {record!r} of collection {name!r}"
    if indexed:
        yield f"{len(indexed)} entries of the keyword index of collection {name!r} belong to no record"


def _indexed(connection: apsw.Connection, collection: int) -> dict[int, Counter[str]]:
    """The words that the keyword index holds for each record."""
    start = keywords.first_key(collection)
    found: dict[int, Counter[str]] = {}
    for term, key in connection.execute(f"SELECT term, doc FROM {keywords.places(connection, collection)}"):
        if start <= key < start + keywords.RANGE:
            found.setdefault(key, Counter())[term] += 1
    return found


def _vectors(connection: apsw.Connection, space: int, model: str) -> Iterator[str]:
    # vec0's own list of what it holds: reading the vectors themselves would take a hundred times as long.
    held = f"{vector_table(space)}_rowids"
    missing = _number(connection, f"embeddings WHERE space = {space} AND record NOT IN (SELECT rowid FROM {held})")
    if missing:
        yield f"{missing} vectors of {model!r} are missing from the vector table"
    stray = _number(connection, f"{held} WHERE rowid NOT IN (SELECT record FROM embeddings WHERE space = {space})")
    if stray:
        yield f"{stray} vectors of {model!r} belong to no record"


def _outdated(connection: apsw.Connection, space: int, model: str) -> Iterator[str]:
    stale = _number(
        connection,
        f"embeddings e JOIN records r ON r.key = e.record WHERE e.space = {space} AND e.text_hash <> r.hash",
    )
    if stale:
        yield f"{stale} vectors of {model!r} were made for another text than the record has"


def _codes(connection: apsw.Connection, collection: int, name: str, space: int, dimensions: int) -> Iterator[str]:
    there = np.concatenate(
        [
            np.empty(0, np.int64),
            *(part.codes.records for part in segments.parts(connection, collection, space, dimensions)),
        ]
    )
    there = np.setdiff1d(there, segments.removed_after(connection, collection, space, 0))
    expected = np.array(
        [
            record
            for (record,) in rows(
                connection,
                "SELECT r.key FROM records r JOIN embeddings e ON e.record = r.key "
                "WHERE e.space = ? AND r.collection = ?",
                (space, collection),
            )
        ],
        np.int64,
    )
    if not np.array_equal(there, np.sort(expected)):
        yield f"the search codes of collection {name!r} are for {len(there)} vectors, of which it has {len(expected)}"
    [(live,)] = rows(connection, "SELECT live FROM matrices WHERE collection = ? AND space = ?", (collection, space))
    if live != len(expected):
        yield f"collection {name!r} counts {live} vectors and has {len(expected)}"


def _number(connection: apsw.Connection, condition: str) -> int:
    [(number,)] = rows(connection, f"SELECT count(*) FROM {condition}")
    return int(number)
