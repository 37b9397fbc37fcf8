"""The tables of the store, and whether they agree: for every record one entry in each index, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import numpy as np

from homing.database import Step
from homing.database.sqlite.database import rows
from homing.errors import StoreCorrupt
from homing.stores.postings.segment import counted
from homing.stores.sqlite import repair, segments, words
from homing.stores.sqlite.reading import vector_table

COMPONENT = "store"

# Steps are only ever added: what was released is never edited.
#
# A record's key is never used twice, not even by a new version of the same record, so whoever follows the file by keys
# cannot mistake one for another. Each collection has a range of keys (reading.py). Texts are TEXT, or a BLOB where
# UTF-8 cannot hold them (half a surrogate pair).
#
# `hash` names the text, `checksum` guards what else a row holds. A collection that was dropped has no name any more and
# frees its room in portions.
#
# A space is one model identity; its vectors live in a vec0 table of its own, `vectors_<space>`, so that two models can
# be held side by side. `embeddings` says which record has a vector where, and of which text. The space of a collection
# is the one that serves it.
#
# segments, removals and matrices are the small copy that searches read into memory (segments.py); word_segments,
# word_pieces and word_removals are the keyword index (words.py).
_RECORDS = """
CREATE TABLE spaces(
    id INTEGER PRIMARY KEY, model TEXT NOT NULL, dimensions INTEGER NOT NULL, UNIQUE(model, dimensions)
) STRICT;
CREATE TABLE collections(
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, space INTEGER,
    records INTEGER NOT NULL DEFAULT 0, next_key INTEGER NOT NULL
) STRICT;
CREATE TABLE records(
    key INTEGER PRIMARY KEY, collection INTEGER NOT NULL, id TEXT NOT NULL,
    metadata TEXT NOT NULL, keywords ANY, text ANY NOT NULL, hash TEXT NOT NULL, checksum INTEGER NOT NULL,
    UNIQUE(collection, id)
) STRICT;
CREATE TABLE attributes(
    collection INTEGER NOT NULL, key ANY NOT NULL, value TEXT NOT NULL, record INTEGER NOT NULL,
    PRIMARY KEY(collection, key, value, record)
) STRICT, WITHOUT ROWID;
CREATE TABLE embeddings(
    space INTEGER NOT NULL, record INTEGER NOT NULL, text_hash TEXT NOT NULL, PRIMARY KEY(space, record)
) STRICT, WITHOUT ROWID;
CREATE TABLE matrices(
    collection INTEGER NOT NULL, space INTEGER NOT NULL, epoch INTEGER NOT NULL DEFAULT 0,
    last_segment INTEGER NOT NULL DEFAULT 0, last_removal INTEGER NOT NULL DEFAULT 0,
    live INTEGER NOT NULL DEFAULT 0, dead INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(collection, space)
) STRICT, WITHOUT ROWID;
CREATE TABLE segments(
    id INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL, space INTEGER NOT NULL,
    rows INTEGER NOT NULL, merged_from INTEGER NOT NULL, merged_to INTEGER NOT NULL,
    records BLOB NOT NULL, scales BLOB NOT NULL, errors BLOB NOT NULL, codes BLOB NOT NULL
) STRICT;
CREATE INDEX segments_by_matrix ON segments(collection, space, id);
CREATE TABLE removals(
    id INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL, space INTEGER NOT NULL, records BLOB NOT NULL
) STRICT;
CREATE INDEX removals_by_matrix ON removals(collection, space, id);
CREATE TABLE word_segments(
    id INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL, texts INTEGER NOT NULL,
    postings INTEGER NOT NULL, header BLOB NOT NULL
) STRICT;
CREATE INDEX word_segments_by_collection ON word_segments(collection, id, texts, postings);
CREATE TABLE word_pieces(
    segment INTEGER NOT NULL, number INTEGER NOT NULL, postings BLOB NOT NULL, UNIQUE(segment, number)
) STRICT;
CREATE TABLE word_removals(
    id INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL, texts INTEGER NOT NULL, keys BLOB NOT NULL
) STRICT;
CREATE INDEX word_removals_by_collection ON word_removals(collection, id);
"""

_CHECKSUMS = """
ALTER TABLE segments ADD COLUMN checksum INTEGER;
ALTER TABLE removals ADD COLUMN checksum INTEGER;
"""

STEPS: tuple[Step, ...] = (_RECORDS, _CHECKSUMS)


def findings(connection: apsw.Connection) -> Iterator[str]:
    """What is wrong, a sentence each. Reads everything: seconds for a million records."""
    damage = [text for (text,) in rows(connection, "PRAGMA quick_check(5)") if text != "ok"]
    if damage:
        yield f"the file is damaged: {'; '.join(damage)}"
        return
    yield from _records(connection)
    for collection, name in rows(connection, "SELECT id, name FROM collections WHERE name IS NOT NULL"):
        yield from _texts(connection, collection, name)
    for space, model, dimensions in rows(connection, "SELECT id, model, dimensions FROM spaces"):
        yield from _vectors(connection, space, model)
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
    "word_": "keywords",
    "records": "texts",
    "vectors_": "vectors",
    "embeddings": "vectors",
    "segments": "codes",
    "removals": "codes",
    "attributes": "filters",
}


def _records(connection: apsw.Connection) -> Iterator[str]:
    for name, count, there in rows(
        connection,
        "SELECT c.name, c.records, (SELECT count(*) FROM records r WHERE r.collection = c.id) AS there "
        "FROM collections c WHERE c.records <> there",
    ):
        yield f"collection {name!r} counts {count} records and has {there}"
    for condition, sentence in (
        ("records WHERE collection NOT IN (SELECT id FROM collections)", "records belong to no collection"),
        ("attributes WHERE record NOT IN (SELECT key FROM records)", "attributes belong to no record"),
        ("embeddings WHERE record NOT IN (SELECT key FROM records)", "vectors belong to no record"),
    ):
        yield from _counted(connection, condition, sentence)


def _texts(connection: apsw.Connection, collection: int, name: str) -> Iterator[str]:
    """Whether each row is what was written, and the keyword index holds the words of each text and no others."""
    try:
        indexed = {key: counts for key, _, counts in words.tables(connection).contents(collection)}
    except StoreCorrupt:
        yield f"the keyword index of collection {name!r} is damaged"
        return
    for row in repair.records(connection, collection):
        held = indexed.pop(row.key, {})
        if row.words is None:
            yield f"record {row.id!r} of collection {name!r} is damaged"
        elif held != counted(row.words):
            yield f"the keyword index does not hold the words of record {row.id!r} of collection {name!r}"
    if indexed:
        yield f"{len(indexed)} entries of the keyword index of collection {name!r} belong to no record"


def _vectors(connection: apsw.Connection, space: int, model: str) -> Iterator[str]:
    # vec0's own list of what it holds: reading the vectors themselves would take a hundred times as long.
    held = f"{vector_table(space)}_rowids"
    mine = f"embeddings e WHERE e.space = {space}"
    for condition, sentence in (
        (f"{mine} AND e.record NOT IN (SELECT rowid FROM {held})", "are missing from the vector table"),
        (f"{held} WHERE rowid NOT IN (SELECT e.record FROM {mine})", "belong to no record"),
        (
            f"{mine} AND e.text_hash <> (SELECT hash FROM records WHERE key = e.record)",
            "were made for another text than the record has",
        ),
    ):
        yield from _counted(connection, condition, f"vectors of {model!r} {sentence}")


def _codes(connection: apsw.Connection, collection: int, name: str, space: int, dimensions: int) -> Iterator[str]:
    try:
        parts = list(segments.parts(connection, collection, space, dimensions))
        gone = segments.removed_after(connection, collection, space, 0)
    except StoreCorrupt:
        yield f"the search codes of collection {name!r} are damaged"
        return
    there = np.concatenate([np.empty(0, np.int64), *(part.codes.records for part in parts)])
    there = np.setdiff1d(there, gone)
    if differing := repair.differing(connection, space, [part.codes for part in parts]):
        yield f"{len(differing)} vectors of collection {name!r} differ from their search codes"
    found = rows(
        connection,
        "SELECT r.key FROM records r JOIN embeddings e ON e.record = r.key WHERE e.space = ? AND r.collection = ?",
        (space, collection),
    )
    expected = np.array([record for (record,) in found], np.int64)
    if not np.array_equal(there, np.sort(expected)):
        yield f"the search codes of collection {name!r} are for {len(there)} vectors, of which it has {len(expected)}"
    [(live,)] = rows(connection, "SELECT live FROM matrices WHERE collection = ? AND space = ?", (collection, space))
    if live != len(expected):
        yield f"collection {name!r} counts {live} vectors and has {len(expected)}"


def _counted(connection: apsw.Connection, condition: str, sentence: str) -> Iterator[str]:
    [(number,)] = rows(connection, f"SELECT count(*) FROM {condition}")
    if number:
        yield f"{number} {sentence}"
