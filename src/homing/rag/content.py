"""Where remembered content lives: one table in the shared database, one store class per kind of content."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from homing.database.sqlite import SqliteDatabase
from homing.errors import InvalidArgument, NotFound
from homing.stores.arguments import check_metadata, checked_name, checked_names, checked_text, is_encodable

if TYPE_CHECKING:
    from apsw import Connection

STEPS = (
    """
    CREATE TABLE content(
        collection TEXT NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL, session_key TEXT NOT NULL,
        category TEXT NOT NULL, tags TEXT NOT NULL, metadata TEXT NOT NULL,
        created REAL NOT NULL, updated REAL NOT NULL,
        PRIMARY KEY(collection, id)) WITHOUT ROWID;
    CREATE INDEX content_by_session ON content(collection, session_key, created);
    CREATE INDEX content_by_age ON content(collection, created);
    """,
)
COLUMNS = "id, text, session_key, category, tags, metadata, created, updated"
RESERVED = frozenset({"session_key", "category", "tags"})
"""Metadata keys that the store itself fills; a caller's metadata cannot overwrite them."""
CHANGEABLE = frozenset({"text", "session_key", "category", "tags", "metadata"})


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


OnSave = Callable[["Connection", Entry], None]
"""Called inside the transaction that saves, so that what it writes and the content live or die together."""
OnDelete = Callable[["Connection", str, Sequence[str]], None]
"""Called inside the transaction that deletes, with collection and ids, to have removed what was derived from them."""


class ContentStore:
    """Content of one kind. Without `on_save` nothing is embedded, and everything else works the same.

    A save that returns is durable, together with what its callback queued; one that raises has changed nothing.
    """

    collections: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, database: SqliteDatabase, *, on_save: OnSave | None = None, on_delete: OnDelete | None = None
    ) -> None:
        self._database = database
        self._on_save = on_save
        self._on_delete = on_delete
        database.migrate("content", STEPS)

    def get(self, collection: str, ids: Sequence[str]) -> dict[str, Entry]:
        """The entries that exist, by id."""
        with self._database.reading() as connection:
            rows: list[tuple[Any, ...]] = connection.execute(
                f"SELECT {COLUMNS} FROM content WHERE collection = ? AND id IN (SELECT value FROM json_each(?))",
                (collection, json.dumps(list(ids))),
            ).fetchall()
        return {row[0]: _entry(collection, row) for row in rows}

    def entries(
        self, collection: str, *, session_key: str | None = None, limit: int = 100, offset: int = 0
    ) -> list[Entry]:
        """The latest entries first, of one session or of all."""
        self._check(collection)
        if limit < 0 or offset < 0:
            raise InvalidArgument("limit and offset must not be negative")
        where, bindings = "collection = ?", [collection]
        if session_key is not None:
            where, bindings = where + " AND session_key = ?", [collection, session_key]
        with self._database.reading() as connection:
            rows: list[tuple[Any, ...]] = connection.execute(
                f"SELECT {COLUMNS} FROM content WHERE {where} ORDER BY created DESC, id LIMIT ? OFFSET ?",
                (*bindings, limit, offset),
            ).fetchall()
        return [_entry(collection, row) for row in rows]

    def every(self, collection: str) -> Iterator[Entry]:
        """All entries, by id, a page at a time."""
        after = ""
        while True:
            with self._database.reading() as connection:
                rows: list[tuple[Any, ...]] = connection.execute(
                    f"SELECT {COLUMNS} FROM content WHERE collection = ? AND id > ? ORDER BY id LIMIT 500",
                    (collection, after),
                ).fetchall()
            yield from (_entry(collection, row) for row in rows)
            if len(rows) < 500:
                return
            after = rows[-1][0]

    def count(self, collection: str) -> int:
        """How many entries there are."""
        with self._database.reading() as connection:
            number: int = connection.execute("SELECT count(*) FROM content WHERE collection = ?", (collection,)).get
        return number

    def delete(self, collection: str, ids: Sequence[str]) -> int:
        """Forget entries with all that was derived from them; returns how many there were."""
        self._check(collection)
        ids = checked_names(ids, "id")
        with self._database.writing() as connection:
            before = connection.total_changes()
            connection.executemany(
                "DELETE FROM content WHERE collection = ? AND id = ?", [(collection, one) for one in ids]
            )
            removed = connection.total_changes() - before
            if self._on_delete is not None:
                self._on_delete(connection, collection, ids)
        return removed

    def update(self, collection: str, entry_id: str, **changes: Any) -> Entry:
        """Change fields of an entry; a changed text is embedded again. Raises NotFound."""
        self._check(collection)
        if wrong := changes.keys() - CHANGEABLE:
            raise InvalidArgument(f"an entry has no {', '.join(sorted(wrong))}; it has {', '.join(sorted(CHANGEABLE))}")
        with self._database.writing() as connection:
            row: tuple[Any, ...] | None = connection.execute(
                f"SELECT {COLUMNS} FROM content WHERE collection = ? AND id = ?", (collection, entry_id)
            ).fetchone()
            if row is None:
                raise NotFound(f"there is no entry {entry_id!r} in {collection!r}")
            return self._write(connection, _checked(replace(_entry(collection, row), **changes)))

    def _save(
        self,
        collection: str,
        text: str,
        *,
        entry_id: str | None = None,
        session_key: str = "",
        category: str = "",
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Entry:
        key = uuid.uuid4().hex if entry_id is None else entry_id
        words = tuple(checked_names(tags, "tag"))
        entry = _checked(Entry(key, collection, text, session_key, category, words, metadata or {}))
        with self._database.writing() as connection:
            return self._write(connection, entry)

    def _write(self, connection: Connection, entry: Entry) -> Entry:
        now = time.time()
        row = (
            entry.collection, entry.id, entry.text, entry.session_key, entry.category,
            json.dumps(entry.tags, ensure_ascii=False), json.dumps(entry.metadata, ensure_ascii=False), now, now,
        )  # fmt: skip
        created: float = connection.execute(
            f"INSERT INTO content(collection, {COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?) "
            "ON CONFLICT(collection, id) DO UPDATE SET text = excluded.text, session_key = excluded.session_key, "
            "category = excluded.category, tags = excluded.tags, metadata = excluded.metadata, "
            "updated = excluded.updated RETURNING created",
            row,
        ).get
        entry = replace(entry, created=created, updated=now)
        if self._on_save is not None:
            self._on_save(connection, entry)
        return entry

    def _check(self, collection: str) -> None:
        if collection not in self.collections:
            known = ", ".join(self.collections)
            raise InvalidArgument(f"{type(self).__name__} has no collection {collection!r}; it has: {known}")


class KnowledgeStore(ContentStore):
    """What is known: facts, documents, answers; global to all sessions."""

    collections = ("knowledge",)

    def save(self, text: str, *, entry_id: str | None = None, **fields: Any) -> Entry:
        """Remember a piece of knowledge; with an id it replaces what had that id."""
        return self._save("knowledge", text, entry_id=entry_id, **fields)


class LearningStore(ContentStore):
    """What was learned from doing: corrections, preferences, what worked; global to all sessions."""

    collections = ("learning",)

    def save(self, text: str, *, entry_id: str | None = None, **fields: Any) -> Entry:
        """Remember a lesson; with an id it replaces what had that id."""
        return self._save("learning", text, entry_id=entry_id, **fields)


class MemoryStore(ContentStore):
    """What happened in a session: observations, and the reflections drawn from them."""

    collections = ("observation", "reflection")

    def save_observation(
        self, text: str, *, session_key: str = "", entry_id: str | None = None, **fields: Any
    ) -> Entry:
        """Remember something observed in a session."""
        return self._save("observation", text, session_key=session_key, entry_id=entry_id, **fields)

    def save_reflection(self, text: str, *, session_key: str = "", entry_id: str | None = None, **fields: Any) -> Entry:
        """Remember a conclusion drawn in a session."""
        return self._save("reflection", text, session_key=session_key, entry_id=entry_id, **fields)


def counts(database: SqliteDatabase) -> dict[str, int]:
    """How many entries each collection of a database holds; makes no tables."""
    with database.reading() as connection:
        if not connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'content'").get:
            return {}
        rows: list[tuple[Any, ...]] = connection.execute(
            "SELECT collection, count(*) FROM content GROUP BY collection ORDER BY collection"
        ).fetchall()
    return dict(rows)


def _checked(entry: Entry) -> Entry:
    """The entry as it is kept; refuses what cannot be, before anything is written."""
    checked_name(entry.id, "the id of an entry")
    if not checked_text(entry.text, "what to remember").strip():
        raise InvalidArgument("there is nothing to remember: the text is empty")
    if not is_encodable(entry.text):
        raise InvalidArgument("the text contains half of a surrogate pair; decode what it came from")
    check_metadata(entry.metadata)
    if taken := RESERVED & entry.metadata.keys():
        raise InvalidArgument(f"metadata cannot hold {', '.join(sorted(taken))}; give them as arguments")
    tags = tuple(checked_names(entry.tags, "tag"))
    return replace(entry, tags=tags, metadata=dict(entry.metadata))


def _entry(collection: str, row: tuple[Any, ...]) -> Entry:
    key, text, session_key, category, tags, metadata, created, updated = row
    return Entry(
        key, collection, text, session_key, category, tuple(json.loads(tags)), json.loads(metadata), created, updated
    )
