"""A chunk as a record of the engine: its text, and the project and document that it is searched by."""

from __future__ import annotations

from collections.abc import Iterator

from homing.documents.archive import Row
from homing.documents.layout import Stored
from homing.documents.splitting import embedded_text
from homing.records import VectorRecord

COLLECTION = "paragraphs"
"""The one collection of all projects, so that a search over everything does not grow with their number."""


def record_of(row: Row, number: int, text: str) -> VectorRecord:
    """The record of one chunk, without a vector."""
    metadata = {"project": row.project, "document": row.id}
    return VectorRecord(row.chunk_id(number), COLLECTION, None, metadata, embedded_text(text))


def records_of(row: Row, stored: Stored) -> Iterator[VectorRecord]:
    """The records of a document, in its order."""
    return (record_of(row, one.number, stored.text[one.start : one.end]) for one in stored.placed())
