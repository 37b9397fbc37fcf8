"""Something remembered, and the record of the store that it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from homing.errors import InvalidArgument
from homing.records import VectorRecord
from homing.stores.arguments import check_metadata, checked_name, checked_names, checked_text, is_encodable

RESERVED = frozenset({"session_key", "category", "tags"})
"""Metadata keys that memory itself fills; a caller's metadata cannot overwrite them."""

SessionKey = str | int | float | bool
"""What names a session; it is kept, and compared, as text."""


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
