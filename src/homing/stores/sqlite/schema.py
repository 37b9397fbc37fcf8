"""The tables of the store. Steps are only ever added: what was released is never edited."""

from __future__ import annotations

import apsw

from homing.database.database import Step

COMPONENT = "store"

CHUNK = 16
"""Rows in a chunk of a vec0 table. Vectors are looked up one by one, and a lookup walks through its chunk."""

# A record's key is never used twice, not even by a new version of the same record, so whoever follows the file by keys
# cannot mistake one for another. Each collection has a range of keys (keywords.py, which also makes its own tables, one
# by one). Texts are TEXT, or a BLOB where UTF-8 cannot hold them (half a surrogate pair).
#
# `hash` names the text, `checksum` guards what else a row holds. A collection that was dropped has no name any more and
# frees its room in portions.
#
# A space is one model identity; its vectors live in a vec0 table of its own, `vectors_<space>`, so that two models can
# be held side by side. `embeddings` says which record has a vector where, and of which text. The space of a collection
# is the one that serves it.
#
# segments, removals and matrices are the small copy that searches read into memory; see segments.py.
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
"""

STEPS: tuple[Step, ...] = (_RECORDS,)


def vector_table(space: int) -> str:
    """The vec0 table that holds the vectors of a space."""
    return f"vectors_{int(space)}"


def create_space(connection: apsw.Connection, model: str, dimensions: int) -> int:
    """The space of a model identity, with its table, made where it does not exist yet."""
    found = connection.execute("SELECT id FROM spaces WHERE model = ? AND dimensions = ?", (model, dimensions)).get
    if found is not None:
        return int(found)
    connection.execute("INSERT INTO spaces(model, dimensions) VALUES (?, ?)", (model, dimensions))
    space = connection.last_insert_rowid()
    _create_table(connection, space, dimensions)
    return space


def empty_space(connection: apsw.Connection, space: int, dimensions: int) -> None:
    """Remove every vector of a space, and the room they take."""
    connection.execute(f"DROP TABLE {vector_table(space)}")
    _create_table(connection, space, dimensions)


def _create_table(connection: apsw.Connection, space: int, dimensions: int) -> None:
    connection.execute(
        f"CREATE VIRTUAL TABLE {vector_table(space)} USING vec0("
        f"record INTEGER PRIMARY KEY, embedding float[{int(dimensions)}] distance_metric=cosine, chunk_size={CHUNK})"
    )
