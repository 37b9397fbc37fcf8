"""The records of one write, checked and worked out before the file is locked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from zlib import crc32

from homing.records import VectorRecord, text_hash
from homing.stores import arguments
from homing.stores.arguments import is_encodable
from homing.stores.filters import attributes
from homing.text.tokens import tokens
from homing.vectors import Matrix

Text = str | bytes
"""A text as a column holds it: as it is, or as bytes where UTF-8 cannot hold it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one collection, each id once. Row `i` of every list belongs to record `i`."""

    collection: str
    ids: list[str]
    metadata: list[str]
    pairs: list[set[tuple[str, str]]]
    keywords: list[Text | None]
    texts: list[Text]
    words: list[str]
    hashes: list[str]
    embedded: list[int]
    """Which of the records have a vector."""
    model: str
    vectors: Matrix


def batches(records: Iterable[VectorRecord], dimensions: int | None) -> list[Batch]:
    """One batch per collection. Of records with one key the last wins."""
    return [_worked_out(checked) for checked in arguments.batches(records, dimensions)]


def _worked_out(checked: arguments.Batch) -> Batch:
    records = checked.records
    return Batch(
        collection=checked.collection,
        ids=[record.id for record in records],
        metadata=[_json(record) for record in records],
        pairs=[attributes(record.metadata) for record in records],
        keywords=[None if record.keywords is None else stored_text(record.keywords) for record in records],
        texts=[stored_text(record.text) for record in records],
        words=[" ".join(tokens(record.text if record.keywords is None else record.keywords)) for record in records],
        hashes=[text_hash(record.text) for record in records],
        embedded=checked.embedded,
        model=checked.model,
        vectors=checked.vectors,
    )


def checksum(metadata: str, keywords: Text | None) -> int:
    """Guards what a row holds beside its text."""
    told = keywords if keywords is not None else ""
    return crc32(metadata.encode() + b"\0" + (told if isinstance(told, bytes) else told.encode()))


def _json(record: VectorRecord) -> str:
    # Chinese takes half the room unescaped; half a surrogate pair survives only escaped.
    found = json.dumps(dict(record.metadata), ensure_ascii=False, separators=(",", ":"))
    return found if is_encodable(found) else json.dumps(dict(record.metadata), separators=(",", ":"))


def stored_text(text: str) -> Text:
    """A text as a column holds it."""
    return text if is_encodable(text) else text.encode("utf-8", "surrogatepass")


def read_text(stored: Text) -> str:
    """The text that `stored_text` kept."""
    return stored if isinstance(stored, str) else stored.decode("utf-8", "surrogatepass")
