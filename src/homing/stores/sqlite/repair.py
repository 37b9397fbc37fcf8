"""Making anew what is derived: the keyword index from the texts, the compact copies from the vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apsw
import numpy as np

from homing.database.sqlite.database import rows
from homing.errors import StoreCorrupt
from homing.records import text_hash
from homing.stores.sqlite import segments, words
from homing.stores.sqlite.reading import read_text, vector_table
from homing.stores.sqlite.segments import Codes, Keys
from homing.stores.sqlite.writing import checksum
from homing.stores.store import Rebuilt
from homing.text.terms import Terms, terms_in
from homing.vectors import Matrix

BATCH = 1_000
UNIT = 1e-3
"""How far the length of a vector may be from one."""


@dataclass(frozen=True, slots=True)
class Held:
    """A record as it is stored. `words` is None where its text, or what else its row holds, is not what was written."""

    key: int
    id: str
    words: Terms | None


def records(connection: apsw.Connection, collection: int) -> Iterator[Held]:
    """The records of a collection in the order of their keys; a damaged one stops nothing."""
    for key, name, metadata, keywords, text, digest, guard in connection.execute(
        "SELECT key, CAST(id AS BLOB), CAST(metadata AS BLOB), CAST(keywords AS BLOB), CAST(text AS BLOB), "
        "CAST(hash AS BLOB), checksum FROM records WHERE collection = ? ORDER BY key",
        (collection,),
    ):
        try:
            whole = read_text(text)
            intact = text_hash(whole) == digest.decode() and checksum(metadata.decode(), keywords) == guard
            found = terms_in(whole if keywords is None else read_text(keywords)) if intact else None
        except UnicodeError:
            found = None
        yield Held(key, name.decode(errors="replace"), found)


def rebuild(connection: apsw.Connection) -> Rebuilt:
    """Make every derived index anew. Vectors that cannot be trusted are taken away: their texts wait for new ones."""
    # Indexes of tables are derived as well.
    connection.execute("REINDEX")
    texts, gone = 0, 0
    for (collection,) in rows(connection, "SELECT id FROM collections WHERE name IS NOT NULL"):
        whole = ((one.key, one.words) for one in records(connection, collection) if one.words is not None)
        texts += words.tables(connection).rebuild(collection, whole)
        gone += sum(_codes(connection, collection, *one) for one in rows(connection, _SPACES, (collection,)))
    return Rebuilt(texts, gone)


_SPACES = """
SELECT DISTINCT s.id, s.dimensions FROM embeddings e JOIN records r ON r.key = e.record JOIN spaces s ON s.id = e.space
WHERE r.collection = ?1 UNION SELECT s.id, s.dimensions FROM matrices m JOIN spaces s ON s.id = m.space
WHERE m.collection = ?1
"""


def _codes(connection: apsw.Connection, collection: int, space: int, dimensions: int) -> int:
    """Write the compact copy of the vectors anew; returns how many vectors could not be trusted."""
    try:
        known = [part.codes for part in segments.parts(connection, collection, space, dimensions)]
    except StoreCorrupt:
        known = []
    bad = differing(connection, space, known)
    held = [
        record
        for (record,) in rows(
            connection,
            "SELECT r.key FROM records r JOIN embeddings e ON e.record = r.key "
            "WHERE e.space = ? AND r.collection = ? ORDER BY r.key",
            (space, collection),
        )
    ]
    epoch = connection.execute(
        "SELECT max(epoch) FROM matrices WHERE collection = ? AND space = ?", (collection, space)
    ).get
    segments.forget(connection, collection, space)
    for start in range(0, len(held), BATCH):
        some = held[start : start + BATCH]
        keys, vectors = _vectors(connection, space, some)
        trusted = _trusted(vectors) & ~np.isin(keys, list(bad)) if len(keys) else np.zeros(0, bool)
        bad |= set(some) - set(keys[trusted].tolist())
        if trusted.any():
            segments.append(connection, collection, space, keys[trusted], vectors[trusted])
    connection.execute(
        "UPDATE matrices SET epoch = ? WHERE collection = ? AND space = ?", ((epoch or 0) + 1, collection, space)
    )
    mine = json.dumps(sorted(bad.intersection(held)))
    for table, column, condition in (
        ("embeddings", "record", f"space = {space} AND"),
        (vector_table(space), "record", ""),
    ):
        connection.execute(
            f"DELETE FROM {table} WHERE {condition} {column} IN (SELECT value FROM json_each(?))", (mine,)
        )
    return len(bad.intersection(held))


def differing(connection: apsw.Connection, space: int, known: Sequence[Codes]) -> set[int]:
    """The records whose vector is none, or is farther from its code than rounding can explain."""
    found: set[int] = set()
    for codes in known:
        for start in range(0, codes.count, BATCH):
            part = codes.take(slice(start, start + BATCH))
            keys, vectors = _vectors(connection, space, part.records.tolist())
            if not len(keys):
                continue
            _, mine, theirs = np.intersect1d(part.records, keys, return_indices=True)
            decoded = part.rows[mine] * part.scales[mine][:, np.newaxis]
            with np.errstate(invalid="ignore", over="ignore"):
                off = np.linalg.norm(vectors[theirs] - decoded, axis=1) > part.errors[mine] + 1e-4
            wrong = off | ~_trusted(vectors[theirs])
            found.update(keys[theirs][wrong].tolist())
    return found


def _vectors(connection: apsw.Connection, space: int, keys: Sequence[int]) -> tuple[Keys, Matrix]:
    # Asked for a list of keys, vec0 reads its whole table; joined to it, each row is looked up.
    found = rows(
        connection,
        "SELECT v.record, v.embedding FROM json_each(?) AS given "
        f"CROSS JOIN {vector_table(space)} v ON v.record = given.value",
        (json.dumps(list(keys)),),
    )
    if not found:
        return np.empty(0, np.int64), np.empty((0, 0), np.float32)
    return np.array([key for key, _ in found], np.int64), np.stack([np.frombuffer(one, "<f4") for _, one in found])


def _trusted(vectors: Matrix) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    with np.errstate(invalid="ignore", over="ignore"):
        lengths = np.linalg.norm(vectors, axis=1)
        near: np.ndarray[tuple[int], np.dtype[np.bool_]] = np.abs(lengths - 1) < UNIT
    return near
