"""What the tables hold, read back: collections, which records pass a filter, and the records themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import apsw
import numpy as np

from homing.database import Row
from homing.database.sqlite import SqliteDatabase
from homing.database.sqlite.database import rows
from homing.records import VectorRecord
from homing.stores.arguments import is_encodable
from homing.stores.filters import AllOf, AnyOf, Compares, Condition, Exists, Filter, Has, Not
from homing.stores.postings.index import View
from homing.stores.postings.question import Question
from homing.stores.postings.tables import NAMED
from homing.stores.sqlite.segments import Counters, Keys
from homing.vectors import Vector

COUNTED = 10_000
"""Records up to which it is counted whether all of them have a pair."""
BROAD = 4
"""The records of a pair are counted up to one in so many: whether it is rare is known then."""
FILTERS_HELD = 100
NAMED_HELD = 20_000
"""Filters of a collection whose records are held, and how many records of all of them."""
REMEMBERED = 1_000
"""Filters whose estimates are kept."""

RANGE = 2**40
"""Keys of a collection: its id times this, and up. More than it will ever use."""

Text = str | bytes
"""A text as a column holds it: as it is, or as bytes where UTF-8 cannot hold it."""
Binding = str | int | float | bytes


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection, where the vectors stand that serve it (None where there are none), and the rows of its words.

    `named` are the records that pass filters which were asked, `telling` what these come down to, and `question` is the
    last query as the words answer it; they are held for as long as nobody writes.
    """

    id: int
    name: str
    records: int
    counters: Counters | None = None
    word_segments: tuple[int, ...] = ()
    word_removals: tuple[int, ...] = ()
    named: dict[Filter, Keys] = field(default_factory=dict, compare=False, repr=False)
    telling: dict[Filter, Filter] = field(default_factory=dict, compare=False, repr=False)
    question: dict[str, tuple[Question, Mapping[str, str], View]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def space(self) -> int | None:
        """The space of the model that serves it."""
        return None if self.counters is None else self.counters.space

    @property
    def model(self) -> str:
        """The model that serves it; empty where nothing has a vector."""
        return self.counters.model if self.counters is not None and self.counters.live else ""

    @property
    def pending(self) -> int:
        """How many records have no vector of that model."""
        return self.records - (self.counters.live if self.counters is not None else 0)


def first_key(collection: int) -> int:
    """Where the keys of a collection begin; they end where those of the next would."""
    return collection * RANGE


def find_collection(connection: apsw.Connection, name: str) -> Collection | None:
    """The collection of that name, if there is one."""
    row = connection.execute(
        "SELECT c.id, c.records, (SELECT json_group_array(w.id) FROM word_segments w WHERE w.collection = c.id), "
        "(SELECT json_group_array(w.id) FROM word_removals w WHERE w.collection = c.id), m.space, s.model, "
        "s.dimensions, m.epoch, m.last_segment, m.last_removal, m.live, m.dead FROM collections c "
        "LEFT JOIN spaces s ON s.id = c.space "
        "LEFT JOIN matrices m ON m.collection = c.id AND m.space = c.space WHERE c.name = ?",
        (name,),
    ).fetchone()
    if row is None:
        return None
    number, records, segments, removals, space, *rest = row
    counters = None if space is None else Counters(number, space, *rest)
    return Collection(number, name, records, counters, tuple(json.loads(segments)), tuple(json.loads(removals)))


class Catalog:
    """What is known of collections, read once for as long as nobody writes to the file. Safe to call from threads."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._known: WeakKeyDictionary[apsw.Connection, tuple[int, dict[str, Collection | None]]] = WeakKeyDictionary()

    @contextmanager
    def reading(self, name: str) -> Iterator[tuple[apsw.Connection, Collection | None]]:
        """A transaction, and a collection as that transaction sees it."""
        with self._database.reading() as connection:
            # What is read first fixes what the transaction sees. The number means something to this connection alone.
            version = connection.pragma("data_version")
            seen, found = self._known.get(connection, (None, {}))
            if seen != version:
                found = {}
                self._known[connection] = (version, found)
            if name not in found:
                found[name] = find_collection(connection, name)
            yield connection, found[name]


_HAS = "collection = ? AND key = ? AND value IN (SELECT value FROM json_each(?))"


def conditions(collection: int, asked: Filter, record: str) -> tuple[str, list[Binding]]:
    """`AND …` for each condition of a filter, on the column that holds the key of a record."""
    found = [_condition(collection, one, record) for one in asked]
    return "".join(f" AND {sql}" for sql, _ in found), [value for _, bound in found for value in bound]


def matching(connection: apsw.Connection, collection: Collection, asked: Filter, lead: Has | None) -> Keys:
    """The keys of all records that pass a filter, in order; `lead` is the rarest of its pairs."""
    found = collection.named.get(asked)
    if found is None:
        if lead is None:
            rest, bindings = conditions(collection.id, asked, "r.key")
            sql = f"SELECT r.key FROM records r WHERE r.collection = ?{rest}"
            found = _keys(rows(connection, sql, (collection.id, *bindings)))
        else:
            # The others are looked up for what it lets through.
            rest, bindings = conditions(collection.id, tuple(one for one in asked if one != lead), "a.record")
            sql = f"SELECT DISTINCT a.record FROM attributes a WHERE {_HAS}{rest}"
            found = _keys(rows(connection, sql, (*_bound(collection.id, lead), *bindings)))
        held = collection.named
        if len(held) == FILTERS_HELD or sum(map(len, held.values())) + len(found) > NAMED_HELD:
            held.clear()
        if len(found) <= NAMED_HELD:
            held[asked] = found
    return found


def passing(connection: apsw.Connection, collection: int, asked: Filter, records: Keys) -> Keys:
    """Those of these records that pass a filter."""
    rest, bindings = conditions(collection, asked, "given.value")
    sql = f"SELECT given.value FROM json_each(?) AS given WHERE 1{rest}"
    return _keys(rows(connection, sql, (json.dumps(records.tolist()), *bindings)))


def _keys(found: list[Row]) -> Keys:
    return np.sort(np.array([key for (key,) in found], np.int64))


def _condition(collection: int, one: Condition, record: str) -> tuple[str, list[Binding]]:
    match one:
        case Has():
            return f"EXISTS (SELECT 1 FROM attributes WHERE {_HAS} AND record = {record})", _bound(collection, one)
        case Exists(key):
            return f"EXISTS ({_values(record)})", [_name(key)]
        case Compares(key, sign, value):
            kinds = "('text')" if isinstance(value, str) else "('integer', 'real')"
            # A list is met when one of its items is.
            items = ", json_each(CASE v.type WHEN 'array' THEN v.value ELSE json_array(v.value) END) item"
            known = "v.type NOT IN ('true', 'false', 'null', 'object')"
            sql = f"{_values(record, items)} AND {known} AND item.type IN {kinds} AND item.value {sign} ?"
            return f"EXISTS ({sql})", [_name(key), value]
        case Not(part):
            sql, bindings = _condition(collection, part, record)
            return f"NOT {sql}", bindings
        case AnyOf(parts) | AllOf(parts):
            found = [_condition(collection, part, record) for part in parts]
            joint = " OR " if isinstance(one, AnyOf) else " AND "
            return f"({joint.join([sql for sql, _ in found])})", [value for _, bound in found for value in bound]


def _values(record: str, items: str = "") -> str:
    """SQL for the value of a key in the metadata of a record, and for its items."""
    return f"SELECT 1 FROM records m, json_each(m.metadata) v{items} WHERE m.key = {record} AND v.key = ?"


def _name(key: str) -> str:
    # Half a surrogate pair is written escaped, and read back as a character of replacement: it is found by nothing.
    return key.encode("utf-8", "replace").decode()


def _bound(collection: int, pair: Has) -> list[Binding]:
    return [collection, stored_text(pair.key), json.dumps(pair.values)]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The rarest pair of a filter, and how many records have it, counted up to a border; `of` is of how many."""

    pair: Has | None
    count: int
    of: int


class Estimates:
    """How many records a filter lets through, about: what decides how a search goes about it, and nothing else.

    They were made a while ago, and cost at most some time when they are wrong.
    """

    def __init__(self) -> None:
        self._held: dict[tuple[int, Filter], Estimate] = {}

    def of(self, connection: apsw.Connection, collection: int, records: int, asked: Filter) -> Estimate:
        """How many records of a collection pass; made anew once it has grown or shrunk by a tenth."""
        found = self._held.get((collection, asked))
        if found is None or abs(records - found.of) > found.of // 10:
            found = _counted(connection, collection, records, asked)
            if len(self._held) >= REMEMBERED:
                self._held.clear()
            self._held[collection, asked] = found
        return found

    def telling(self, connection: apsw.Connection, collection: Collection, asked: Filter) -> Filter:
        """A filter without the pair that every record has, as of the project where there is one: nothing is to be
        asked then."""
        if asked and asked not in collection.telling:
            estimate = self.of(connection, collection.id, collection.records, asked)
            kept = asked
            if estimate.pair is not None and estimate.count == estimate.of <= COUNTED:
                sql = f"SELECT count(DISTINCT record) FROM attributes WHERE {_HAS}"
                [(count,)] = rows(connection, sql, _bound(collection.id, estimate.pair))
                if count == collection.records:
                    kept = tuple(one for one in asked if one != estimate.pair)
            if len(collection.telling) == FILTERS_HELD:
                collection.telling.clear()
            collection.telling[asked] = kept
        return collection.telling[asked] if asked else asked


def _counted(connection: apsw.Connection, collection: int, records: int, asked: Filter) -> Estimate:
    """Counted in one statement."""
    pairs = [one for one in asked if isinstance(one, Has)]
    if not pairs:
        return Estimate(None, records, records)
    counts = [f"(SELECT count(*) FROM (SELECT 1 FROM attributes WHERE {_HAS} LIMIT ?))"] * len(pairs)
    border = max(NAMED + 1, records // BROAD)
    bindings = [value for pair in pairs for value in (*_bound(collection, pair), border)]
    [found] = rows(connection, f"SELECT {', '.join(counts)}", bindings)
    count, at = min((count, at) for at, count in enumerate(found))
    return Estimate(pairs[at], count, records)


_COLUMNS = "key, id, metadata, keywords, text"
_OF_IDS = "collection = ? AND id IN (SELECT value FROM json_each(?))"


def texts_of(connection: apsw.Connection, collection: Collection, ids: Sequence[str], lacking: str) -> dict[str, str]:
    """The texts of those records that exist, by id; with `lacking`, that have no vector of this model."""
    found = rows(
        connection,
        f"SELECT id, text FROM records WHERE {_OF_IDS} AND NOT EXISTS (SELECT 1 FROM spaces s "
        "JOIN embeddings e ON e.space = s.id WHERE s.model = ? AND e.record = records.key)",
        (collection.id, json.dumps(ids), lacking),
    )
    return {name: read_text(text) for name, text in found}


def records_with_ids(
    connection: apsw.Connection, collection: Collection, ids: Sequence[str], *, embeddings: bool
) -> list[VectorRecord]:
    """The records of these ids that exist; without `embeddings`, without their vectors."""
    found = rows(connection, f"SELECT {_COLUMNS} FROM records WHERE {_OF_IDS}", (collection.id, json.dumps(ids)))
    return _records(connection, collection, found, embeddings=embeddings)


def records_after(connection: apsw.Connection, collection: Collection, after: str, count: int) -> list[VectorRecord]:
    """The next records in the order of their ids."""
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM records WHERE collection = ? AND id > ? ORDER BY id LIMIT ?",
        (collection.id, after, count),
    )
    return _records(connection, collection, found, embeddings=True)


def ids_of(connection: apsw.Connection, collection: Collection, asked: Filter) -> list[str]:
    """Every id that passes a filter, in order."""
    if not asked:
        found = rows(connection, "SELECT id FROM records WHERE collection = ? ORDER BY id", (collection.id,))
    else:
        lead = next((one for one in asked if isinstance(one, Has)), None)
        keys = json.dumps(matching(connection, collection, asked, lead).tolist())
        sql = "SELECT id FROM records WHERE key IN (SELECT value FROM json_each(?)) ORDER BY id"
        found = rows(connection, sql, (keys,))
    return [name for (name,) in found]


def _records(
    connection: apsw.Connection, collection: Collection, found: list[Row], *, embeddings: bool
) -> list[VectorRecord]:
    held: dict[int, Vector] = {}
    if embeddings and found and collection.counters is not None:
        blobs = stored_vectors(connection, collection.counters, [row[0] for row in found], "r.key")
        held = {key: np.frombuffer(blob, "<f4").astype(np.float32, copy=False) for key, blob in blobs}
    return [
        VectorRecord(
            id=name,
            collection=collection.name,
            embedding=held.get(key),
            metadata=json.loads(metadata),
            text=read_text(text),
            model=collection.model if key in held else "",
            keywords=None if keywords is None else read_text(keywords),
        )
        for key, name, metadata, keywords, text in found
    ]


def stored_vectors(connection: apsw.Connection, counters: Counters, keys: Sequence[int], column: str) -> list[Row]:
    """A column of those of these records that have a vector, and the vector, looked up in one statement."""
    # Asked for a list of keys, vec0 reads its whole table; its own tables answer at once.
    sql = (
        f"SELECT {column}, k.chunk_id, k.chunk_offset FROM json_each(?) AS given JOIN records r ON r.key = given.value "
        f"JOIN {vector_table(counters.space)}_rowids k ON k.rowid = r.key"
    )
    return vectors_at(connection, counters, rows(connection, sql, (json.dumps(keys),)))


def vectors_at(connection: apsw.Connection, counters: Counters, places: Sequence[Row]) -> list[Row]:
    """The vectors at some places, given as a name, the chunk and the number in it: each name with its vector."""
    if not places:
        return []
    width, found = 4 * counters.dimensions, list[Row]()
    # A chunk holds the vectors of several records: as a value, it would be read whole for each.
    table = f"{vector_table(counters.space)}_vector_chunks00"
    with connection.blob_open("main", table, "vectors", places[0][1], False) as chunk:
        for name, number, offset in places:
            chunk.reopen(number)
            chunk.seek(offset * width)
            found.append((name, chunk.read(width)))
    return found


def vector_table(space: int) -> str:
    """The vec0 table that holds the vectors of a space."""
    return f"vectors_{int(space)}"


def stored_text(text: str) -> Text:
    """A text as a column holds it."""
    return text if is_encodable(text) else text.encode("utf-8", "surrogatepass")


def read_text(stored: Text) -> str:
    """The text that `stored_text` kept."""
    return stored if isinstance(stored, str) else stored.decode("utf-8", "surrogatepass")
