"""Vectors of records: exact in the vec0 table of their space, as codes in memory, and found by both.

Candidates come from the codes and are then compared exactly. Without a filter all codes are scored. A selective filter
names its records first and only those are scored. A broad one scores all and asks of the best whether they pass, more
and more of them until there are enough or none is left, so a record that passes is found however far down it is.

Memory: dimensions + 16 bytes a vector (40 MB for 100,000 of 384), for a moment twice that when the room runs out. The
least recently searched matrices are let go when all of them together exceed the bound; they are read again when needed.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import apsw
import numpy as np

from homing.database import Row
from homing.database.sqlite.database import rows
from homing.stores.filters import Filter
from homing.stores.sqlite import reading, segments
from homing.stores.sqlite.reading import Catalog, Collection, Estimates, vector_table
from homing.stores.sqlite.segments import Codes, Counters, Keys, Part, Positions, Query, Scores, nearest
from homing.stores.store import Near
from homing.vectors import Matrix, Vector, pack

MEMORY = 2 * 1024**3
"""Bytes that all matrices of a store may take together, by default."""
SELECTIVE = 2_000
"""Records up to which a filter is always selective."""
SELECTIVE_SHARE = 20
"""Beyond that, one in so many: naming a record costs about as much as scoring twenty."""
FIRST_ASKED = 32
"""Candidates of a broad filter that are asked at first, beside four for each match wanted that should pass."""
ASKED_ONE_BY_ONE = 8_192
"""Candidates of a broad filter after which all that pass are named instead."""

CHUNK = 8
"""Rows in a chunk of a vec0 table. Vectors are looked up one by one, and a lookup walks through its chunk."""


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


def add(
    connection: apsw.Connection, collection: int, space: int, keys: list[int], hashes: list[str], vectors: Matrix
) -> None:
    """Write the vectors of records, by key, for the texts with these hashes."""
    connection.executemany(
        f"INSERT INTO {vector_table(space)}(record, embedding) VALUES (?, ?)",
        zip(keys, map(pack, vectors), strict=True),
    )
    connection.executemany(
        "INSERT INTO embeddings(space, record, text_hash) VALUES (?, ?, ?)",
        zip([space] * len(keys), keys, hashes, strict=True),
    )
    segments.append(connection, collection, space, np.array(keys, np.int64), vectors)


def remove(connection: apsw.Connection, collection: int, keys: Sequence[int]) -> None:
    """Take the vectors of records away, those of every model."""
    spaces = rows(
        connection,
        "SELECT m.space, s.dimensions FROM matrices m JOIN spaces s ON s.id = m.space WHERE m.collection = ?",
        (collection,),
    )
    for space, dimensions in spaces:
        found = rows(
            connection,
            "DELETE FROM embeddings WHERE space = ? AND record IN (SELECT value FROM json_each(?)) RETURNING record",
            (space, json.dumps(list(keys))),
        )
        if found:
            connection.executemany(f"DELETE FROM {vector_table(space)} WHERE record = ?", found)
            gone = np.array([record for (record,) in found], np.int64)
            segments.remove(connection, collection, space, dimensions, gone)


@dataclass(frozen=True)
class Snapshot:
    """A matrix as one transaction sees it. Never changes, whatever is written meanwhile."""

    state: Counters
    codes: Codes
    dead: Positions
    ascending: bool

    def scores(self, query: Query) -> Scores:
        """The score of each row; nothing where the row was removed."""
        values = query.scores(self.codes)
        values[self.dead] = -np.inf
        return values

    def positions(self, records: Keys) -> Positions:
        """Where these records are; those without a vector are left out."""
        if self.ascending:
            found = np.searchsorted(self.codes.records, records)
            inside = found < self.codes.count
            found, records = found[inside], records[inside]
            found = found[self.codes.records[found] == records]
        else:
            found = np.flatnonzero(np.isin(self.codes.records, records))
        return np.setdiff1d(found, self.dead) if self.dead.size else found


class LiveMatrix:
    """Follows one collection: appends what was added, remembers what was removed, starts over at a new epoch."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._now: Snapshot | None = None
        self._room: Codes | None = None

    @property
    def bytes(self) -> int:
        """What it occupies. Room that is not used yet is no memory yet."""
        now = self._now
        return 0 if now is None else now.codes.count * (now.state.dimensions + 16)

    def follow(self, connection: apsw.Connection, state: Counters) -> Snapshot:
        """The matrix as of `state`, which must not be older than what was seen before. The lock must be held."""
        now = self._now
        if now is not None and now.state == state:
            return now
        try:
            known = now is not None and state.continues(now.state)
            self._now = self._advance(connection, state, now if known else None)
        except BaseException:
            self._now = self._room = None
            raise
        return self._now

    def _advance(self, connection: apsw.Connection, state: Counters, before: Snapshot | None) -> Snapshot:
        used = 0 if before is None else before.codes.count
        seen = 0 if before is None else before.state.last_segment
        ascending = before is None or before.ascending
        if before is None:
            self._room = _room(state.live + state.dead, state.dimensions)
        for part in segments.parts(connection, state.collection, state.space, state.dimensions, seen):
            new = _unknown(part, seen, self._codes(used))
            if new.count:
                ascending = ascending and _ascends(self._codes(used), new)
                self._store(used, new)
                used += new.count
        codes = self._codes(used)
        removal = before.state.last_removal if before else 0
        gone = segments.removed_after(connection, state.collection, state.space, removal)
        dead = np.empty(0, np.int64) if before is None else before.dead
        if gone.size:
            lost = Snapshot(state, codes, dead, ascending).positions(gone)
            dead = np.concatenate([dead, lost])
        return Snapshot(state, codes, dead, ascending)

    def _codes(self, used: int) -> Codes:
        assert self._room is not None
        return self._room.take(slice(used))

    def _store(self, used: int, new: Codes) -> None:
        assert self._room is not None
        if used + new.count > self._room.count:
            # Snapshots in use keep the old arrays; only rows beyond theirs are ever written.
            larger = _room(used + new.count, new.rows.shape[1])
            larger.put(0, self._codes(used))
            self._room = larger
        self._room.put(used, new)


@dataclass
class Matrices:
    """The matrices of a store, by collection."""

    memory: int = MEMORY
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _held: OrderedDict[str, LiveMatrix] = field(default_factory=OrderedDict)

    @contextmanager
    def current(
        self, catalog: Catalog, name: str
    ) -> Iterator[tuple[apsw.Connection, Collection | None, Snapshot | None]]:
        """A transaction, and a collection and its matrix as it sees them; None where it has no vectors."""
        matrix = self._of(name)
        with ExitStack() as stack:
            # The lock comes first: then what this transaction sees is never older than what is in memory.
            with matrix.lock:
                connection, known = stack.enter_context(catalog.reading(name))
                before = matrix.bytes
                found = None
                if known is not None and known.counters is not None:
                    found = matrix.follow(connection, known.counters)
            if found is None:
                self.forget(name)
            elif matrix.bytes > before:
                self._make_room()
            yield connection, known, found

    def forget(self, collection: str) -> None:
        """Let one go."""
        with self._lock:
            self._held.pop(collection, None)

    def _of(self, collection: str) -> LiveMatrix:
        with self._lock:
            matrix = self._held.setdefault(collection, LiveMatrix())
            self._held.move_to_end(collection)
            return matrix

    def _make_room(self) -> None:
        with self._lock:
            total = sum(held.bytes for held in self._held.values())
            while total > self.memory and len(self._held) > 1:
                total -= self._held.popitem(last=False)[1].bytes

    @property
    def bytes(self) -> int:
        """What all of them occupy."""
        with self._lock:
            return sum(held.bytes for held in self._held.values())


def _room(rows: int, dimensions: int) -> Codes:
    """Room for so many rows and a third more, so that growing copies each row a few times only."""
    return Codes.room(rows + rows // 3 + 64, dimensions)


def _unknown(part: Part, seen: int, known: Codes) -> Codes:
    """The rows of a segment that are new to a reader which has seen segment `seen`: of a merged one, perhaps a part."""
    if not part.merged_from or seen < part.merged_from:
        return part.codes
    return part.codes.take(~np.isin(part.codes.records, known.records))


def _ascends(known: Codes, new: Codes) -> bool:
    if known.count and known.records[-1] >= new.records[0]:
        return False
    return bool(np.all(new.records[1:] > new.records[:-1]))


def search(
    connection: apsw.Connection,
    collection: Collection,
    snapshot: Snapshot,
    vector: Vector,
    limit: int,
    asked: Filter,
    estimates: Estimates,
) -> list[Near]:
    """The nearest, `limit` of them if so many exist, nearest first; ties by id."""
    query = Query.of(vector)
    if asked:
        records = _filtered(connection, collection, snapshot, query, limit, asked, estimates)
    else:
        records = snapshot.codes.records[query.candidates(snapshot.codes, snapshot.scores(query), limit)]
    near = _cosines(reading.stored_vectors(connection, snapshot.state, records.tolist(), "r.id"), vector)
    best = sorted([(max(0.0, 1.0 - cosine), name) for name, cosine in near.items()])[:limit]
    return [Near(name, 1.0 - distance) for distance, name in best]


def _filtered(
    connection: apsw.Connection,
    collection: Collection,
    snapshot: Snapshot,
    query: Query,
    limit: int,
    asked: Filter,
    estimates: Estimates,
) -> Keys:
    estimate = estimates.of(connection, collection.id, snapshot.state.live, asked)
    if estimate.count > max(SELECTIVE, snapshot.codes.count // SELECTIVE_SHARE):
        # So many of the nearest that enough should pass, some of which may turn out to be farther than they look.
        first = 4 * limit * estimate.of // estimate.count + FIRST_ASKED
        passed = _one_by_one(connection, snapshot, query, limit, asked, first)
        if passed is not None:
            return passed
    named = reading.matching(connection, collection, asked, estimate.pair)
    chosen = snapshot.codes.take(snapshot.positions(named))
    return chosen.records[query.candidates(chosen, query.scores(chosen), limit)]


def _one_by_one(
    connection: apsw.Connection, snapshot: Snapshot, query: Query, limit: int, asked: Filter, portion: int
) -> Keys | None:
    """The candidates that pass, asking each record from the nearest on; None where too few do."""
    codes, values = snapshot.codes, snapshot.scores(query)
    doubt = query.doubt(codes)
    left, passed = values.copy(), np.empty(0, np.int64)
    most = max(ASKED_ONE_BY_ONE, portion)
    while portion <= most:
        best = nearest(left, portion)
        left[best] = -np.inf
        records = codes.records[best]
        kept = reading.passing(connection, snapshot.state.collection, asked, records)
        passed = np.concatenate([passed, best[np.isin(records, kept)]])
        # Whoever was not asked yet scores no more than the last who was.
        if not len(best) or (len(passed) >= limit and values[passed[limit - 1]] - values[best[-1]] >= 2 * doubt):
            return codes.records[passed[query.candidates(codes.take(passed), values[passed], limit)]]
        portion *= 4
    return None


def measured(
    connection: apsw.Connection, collection: Collection, ids: Sequence[str], vector: Vector | None
) -> tuple[dict[str, int], dict[str, float]]:
    """The keys of those of these records that exist, and how near those are that have a vector, in one statement."""
    listed = "FROM records r {} WHERE r.collection = ? AND r.id IN (SELECT value FROM json_each(?))"
    bindings = (collection.id, json.dumps(list(ids)))
    if vector is None or collection.counters is None:
        return dict(rows(connection, "SELECT r.id, r.key " + listed.format(""), bindings)), {}
    join = f"LEFT JOIN {vector_table(collection.counters.space)}_rowids k ON k.rowid = r.key"
    found = rows(connection, "SELECT r.id, r.key, k.chunk_id, k.chunk_offset " + listed.format(join), bindings)
    places = [(name, chunk, offset) for name, _, chunk, offset in found if chunk is not None]
    near = _cosines(reading.vectors_at(connection, collection.counters, places), vector)
    return {name: key for name, key, *_ in found}, near


def _cosines(found: Sequence[Row], vector: Vector) -> dict[str, float]:
    """How near stored vectors are to another one, exactly, by id."""
    if not found:
        return {}
    stored = np.frombuffer(b"".join([blob for _, blob in found]), "<f4").reshape(len(found), -1).astype(np.float64)
    # Summed row by row, so that equal vectors get equal cosines wherever they stand, and ties are ties.
    near = np.minimum(1.0, (stored * vector.astype(np.float64)).sum(axis=1))
    return dict(zip([name for name, _ in found], near.tolist(), strict=True))
