"""Something remembered, and where it is kept: a record in the store for each, and beside it, in one transaction, a row
to list it by."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from homing.database import Transaction
from homing.engine import Engine
from homing.errors import InvalidArgument, NotFound
from homing.memory.embedding_buffer import EmbedRequest
from homing.records import VectorRecord
from homing.stores.arguments import check_metadata, checked_name, checked_names, checked_text, is_encodable
from homing.stores.store import Store

STEPS = (
    """
    CREATE TABLE memories(
        collection TEXT NOT NULL, id TEXT NOT NULL, session_key TEXT NOT NULL,
        created FLOAT64 NOT NULL, updated FLOAT64 NOT NULL, PRIMARY KEY(collection, id));
    CREATE INDEX memories_by_session ON memories(collection, session_key, created);
    CREATE INDEX memories_by_age ON memories(collection, created);
    """,
    # Users of a database that they share have collections, and ids, of the same name.
    """
    ALTER TABLE memories RENAME TO memories_of_one;
    DROP INDEX memories_by_session;
    DROP INDEX memories_by_age;
    CREATE TABLE memories(
        user_id TEXT NOT NULL, collection TEXT NOT NULL, id TEXT NOT NULL, session_key TEXT NOT NULL,
        created FLOAT64 NOT NULL, updated FLOAT64 NOT NULL, PRIMARY KEY(user_id, collection, id));
    INSERT INTO memories SELECT '', collection, id, session_key, created, updated FROM memories_of_one;
    DROP TABLE memories_of_one;
    CREATE INDEX memories_by_session ON memories(user_id, collection, session_key, created);
    CREATE INDEX memories_by_age ON memories(user_id, collection, created);
    """,
)
CHANGEABLE = frozenset({"text", "session_key", "category", "tags", "metadata"})
COLLECTIONS = ("knowledge", "observation", "reflection", "learning")
"""What can be remembered and recalled."""

EmbedCallback = Callable[[EmbedRequest], None]
RESERVED = frozenset({"session_key", "category", "tags"})
"""Metadata keys that memory itself fills; a caller's metadata cannot overwrite them."""
SessionKey = str | int | float | bool
"""What names a session; it is kept, and compared, as text."""


class ContentStore:
    """Memories of some kind. What is saved is durable, and found by words, when the call returns.

    Over an engine its vector follows in the background. Over a plain store nothing is embedded, and everything else
    works the same; `embed` is called with each text that was saved, and with None for each that was deleted, so that
    somebody else may embed it: the `enqueue` of an EmbeddingBuffer, say.
    """

    collections: ClassVar[tuple[str, ...]] = COLLECTIONS

    def __init__(self, place: Engine | Store, *, embed: EmbedCallback | None = None) -> None:
        self._engine = place if isinstance(place, Engine) else Engine(place, None)
        self._store = self._engine.store
        self._database = self._engine.database
        self._user = self._engine.user
        self._embed = embed
        self._database.migrate("memories", STEPS)

    def get(self, collection: str, ids: Sequence[str]) -> dict[str, Entry]:
        """The entries that exist, by id."""
        self._check(collection)
        wanted = checked_names(ids, "id")
        statement = "SELECT id, created, updated FROM memories WHERE user_id = $1 AND collection = $2 AND id = ANY($3)"
        found = self._database.read(lambda transaction: transaction.rows(statement, self._user, collection, wanted))
        return {entry.id: entry for entry in self._entries(collection, found)}

    def list(
        self, collection: str, *, session_key: SessionKey | None = None, limit: int = 100, offset: int = 0
    ) -> Sequence[Entry]:
        """The latest entries first, of one session or of all."""
        self._check(collection)
        if limit < 0 or offset < 0:
            raise InvalidArgument("limit and offset must not be negative")
        session = "" if session_key is None else session_text(session_key)
        asked = (self._user, collection, int(session_key is None), session, limit, offset)
        found = self._database.read(
            lambda transaction: transaction.rows(
                "SELECT id, created, updated FROM memories WHERE user_id = $1 AND collection = $2 "
                "AND ($3 = 1 OR session_key = $4) ORDER BY created DESC, id LIMIT $5 OFFSET $6",
                *asked,
            )
        )
        return self._entries(collection, found)

    def count(self, collection: str) -> int:
        """How many entries there are."""
        self._check(collection)
        statement = "SELECT count(*) FROM memories WHERE user_id = $1 AND collection = $2"
        [(count,)] = self._database.read(lambda transaction: transaction.rows(statement, self._user, collection))
        return int(count)

    def add(
        self,
        collection: str,
        text: str,
        *,
        entry_id: str | None = None,
        session_key: SessionKey = "",
        category: str = "",
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Entry:
        """Keep a text; with an id it replaces what had that id, without one the same text of the same session."""
        self._check(collection)
        key = _id_of(text, session_text(session_key)) if entry_id is None else entry_id
        words = tuple(checked_names(tags, "tag"))
        given = Entry(key, collection, text, session_text(session_key), category, words, metadata or {})
        return self._write(collection, lambda: checked(given))

    def update(self, collection: str, entry_id: str, **changes: Any) -> Entry:
        """Change fields of an entry; a changed text is embedded again, another keeps its vector. Raises NotFound."""
        self._check(collection)
        if wrong := changes.keys() - CHANGEABLE:
            raise InvalidArgument(f"an entry has no {', '.join(sorted(wrong))}; it has {', '.join(sorted(CHANGEABLE))}")

        def changed() -> Entry:
            known = self.get(collection, [entry_id])
            if entry_id not in known:
                raise NotFound(f"there is no entry {entry_id!r} in {collection!r}")
            return checked(replace(known[entry_id], **changes))

        return self._write(collection, changed)

    def delete(self, collection: str, ids: Sequence[str]) -> int:
        """Forget entries with all that was made of them; returns how many there were."""
        self._check(collection)
        unwanted, kept = checked_names(ids, "id"), self._engine.collection(collection)

        def work(transaction: Transaction) -> int:
            self._unlist(transaction, collection, unwanted)
            return kept.delete(unwanted, transaction)

        count = self._database.write(work, kept.scope)
        if self._embed is not None:
            for one in unwanted:
                self._embed(EmbedRequest(collection, one, None))
        return count

    def list_again(self, collection: str) -> None:
        """Make rows for records that have none, and remove rows of records that are gone: what `list` goes by.

        Both are written together; records that were copied into the store from another one come without.
        """
        self._check(collection)
        scope = self._engine.collection(collection).scope

        def work(transaction: Transaction) -> None:
            now, there = transaction.now(), self._store.ids(collection)
            statement = "SELECT id FROM memories WHERE user_id = $1 AND collection = $2"
            known = {key for (key,) in transaction.rows(statement, self._user, collection)}
            self._unlist(transaction, collection, sorted(known.difference(there)))
            missing = [key for key in there if key not in known]
            transaction.each(
                "INSERT INTO memories(user_id, collection, id, session_key, created, updated) "
                "VALUES ($1, $2, $3, $4, $5, $5)",
                (
                    (self._user, collection, record.id, entry_of(record, now, now).session_key, now)
                    for record in self._store.get(collection, missing, embeddings=False)
                ),
            )

        self._database.write(work, scope)

    def _write(self, collection: str, make: Callable[[], Entry]) -> Entry:
        """Keep the entry that `make` gives inside the transaction, where nobody else changes this collection."""
        kept = self._engine.collection(collection)

        def work(transaction: Transaction) -> Entry:
            entry, now = make(), transaction.now()
            [(created,)] = transaction.rows(
                "INSERT INTO memories(user_id, collection, id, session_key, created, updated) "
                "VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT(user_id, collection, id) DO UPDATE SET "
                "session_key = excluded.session_key, updated = excluded.updated RETURNING created",
                *(self._user, collection, entry.id, entry.session_key, now),
            )
            kept.write([entry.record], transaction)
            return replace(entry, created=created, updated=now)

        entry = self._database.write(work, kept.scope)
        kept.notify()
        if self._embed is not None:
            self._embed(EmbedRequest(collection, entry.id, entry.text, entry.index_metadata))
        return entry

    def _unlist(self, transaction: Transaction, collection: str, ids: Sequence[str]) -> None:
        transaction.rows(
            "DELETE FROM memories WHERE user_id = $1 AND collection = $2 AND id = ANY($3)",
            *(self._user, collection, list(ids)),
        )

    def _entries(self, collection: str, found: Sequence[tuple[Any, ...]]) -> Sequence[Entry]:
        records = self._store.get(collection, [key for key, _, _ in found], embeddings=False)
        times = {key: (created, updated) for key, created, updated in found}
        return [entry_of(record, *times[record.id]) for record in records]

    def _check(self, collection: str) -> None:
        if collection not in self.collections:
            raise InvalidArgument(f"there is no collection {collection!r}; known: {', '.join(self.collections)}")


class KnowledgeStore(ContentStore):
    """What is known: facts, documents, answers; global to all sessions."""

    collections = ("knowledge",)

    def save(self, text: str, **fields: Any) -> Entry:
        """Remember a piece of knowledge; with an id it replaces what had that id."""
        return self.add("knowledge", text, **fields)


class LearningStore(ContentStore):
    """What was learned from doing: corrections, preferences, what worked; global to all sessions."""

    collections = ("learning",)

    def save(self, text: str, **fields: Any) -> Entry:
        """Remember a lesson; with an id it replaces what had that id."""
        return self.add("learning", text, **fields)


class MemoryStore(ContentStore):
    """What happened in a session: observations, and the reflections drawn from them."""

    collections = ("observation", "reflection")

    def save_observation(self, text: str, **fields: Any) -> Entry:
        """Remember something observed in a session."""
        return self.add("observation", text, **fields)

    def save_reflection(self, text: str, **fields: Any) -> Entry:
        """Remember a conclusion drawn in a session."""
        return self.add("reflection", text, **fields)


@dataclass(frozen=True, slots=True)
class Entry:
    """Something remembered."""

    id: str
    collection: str
    text: str
    session_key: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created: float = 0.0
    updated: float = 0.0

    @property
    def index_metadata(self) -> dict[str, Any]:
        """What a search can filter by."""
        own = {"session_key": self.session_key, "category": self.category, "tags": list(self.tags)}
        return {**self.metadata, **{key: value for key, value in own.items() if value}}

    @property
    def record(self) -> VectorRecord:
        """The entry as a store keeps it, still without a vector."""
        return VectorRecord(self.id, self.collection, None, self.index_metadata, self.text)


def entry_of(record: VectorRecord, created: float, updated: float) -> Entry:
    """The entry that was kept as this record."""
    kept = record.metadata
    return Entry(
        record.id,
        record.collection,
        record.text,
        str(kept.get("session_key", "")),
        str(kept.get("category", "")),
        tuple(kept.get("tags", ())),
        {key: value for key, value in kept.items() if key not in RESERVED},
        created,
        updated,
    )


def session_text(key: object) -> str:
    """A session's name as it is kept: `7` and `"7"` are one session. Empty means none."""
    if not isinstance(key, SessionKey):
        raise InvalidArgument(f"session_key is text or a number; got {type(key).__name__}")
    return "" if key == "" else checked_name(str(key), "session_key")


def checked(entry: Entry) -> Entry:
    """The entry as it is kept; refuses what cannot be, before anything is written."""
    checked_name(entry.id, "the id of an entry")
    if not checked_text(entry.text, "what to remember").strip():
        raise InvalidArgument("there is nothing to remember: the text is empty")
    if not is_encodable(entry.text):
        raise InvalidArgument("the text contains half of a surrogate pair; decode what it came from")
    check_metadata(entry.metadata)
    if taken := RESERVED & entry.metadata.keys():
        raise InvalidArgument(f"metadata cannot hold {', '.join(sorted(taken))}; give them as arguments")
    return replace(
        entry,
        session_key=session_text(entry.session_key),
        category=checked_text(entry.category, "category"),
        tags=tuple(checked_names(entry.tags, "tag")),
        metadata=dict(entry.metadata),
    )


def _id_of(text: str, session: str) -> str:
    """The id of a text that came without one: said twice, it is remembered once, whichever process says it."""
    said = f"{session}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(said, digest_size=16).hexdigest()
