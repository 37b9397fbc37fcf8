"""The records of one write, checked and worked out before the file is locked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from homing.errors import DimensionMismatch, InvalidArgument, ModelMismatch
from homing.records import VectorRecord, text_hash
from homing.stores.arguments import check_metadata, checked_name, checked_text, is_encodable
from homing.stores.attributes import attributes
from homing.text.tokens import tokens
from homing.vectors import Matrix, normalise

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
    embedded: list[int]
    """Which of the records have a vector."""
    hashes: list[str]
    model: str
    vectors: Matrix


def batches(records: Iterable[VectorRecord], dimensions: int | None) -> list[Batch]:
    """One batch per collection. Of records with one key the last wins."""
    latest: dict[str, dict[str, VectorRecord]] = {}
    for record in records:
        if not isinstance(record, VectorRecord):
            raise InvalidArgument(f"upsert takes VectorRecords; got {type(record).__name__}")
        latest.setdefault(record.collection, {})[record.id] = record
    return [
        _batch(checked_name(name, "collection"), list(found.values()), dimensions) for name, found in latest.items()
    ]


def _batch(collection: str, records: list[VectorRecord], dimensions: int | None) -> Batch:
    for record in records:
        checked_name(record.id, "id")
        checked_text(record.text, f"the text of {record.id!r}")
        check_metadata(record.metadata, "metadata")
        if record.keywords is not None:
            checked_text(record.keywords, f"the keywords of {record.id!r}")
    embedded = [index for index, record in enumerate(records) if record.embedding is not None]
    chosen = [records[index] for index in embedded]
    return Batch(
        collection=collection,
        ids=[record.id for record in records],
        metadata=[_json(record) for record in records],
        pairs=[attributes(record.metadata) for record in records],
        keywords=[None if record.keywords is None else stored_text(record.keywords) for record in records],
        texts=[stored_text(record.text) for record in records],
        words=[" ".join(tokens(record.text if record.keywords is None else record.keywords)) for record in records],
        embedded=embedded,
        hashes=[text_hash(record.text) for record in chosen],
        model=_model(chosen),
        vectors=_vectors(chosen, dimensions),
    )


def _json(record: VectorRecord) -> str:
    # Chinese takes half the room unescaped; half a surrogate pair survives only escaped.
    found = json.dumps(dict(record.metadata), ensure_ascii=False, separators=(",", ":"))
    return found if is_encodable(found) else json.dumps(dict(record.metadata), separators=(",", ":"))


def _vectors(records: Sequence[VectorRecord], dimensions: int | None) -> Matrix:
    if not records:
        return np.empty((0, dimensions or 0), np.float32)
    rows = [np.asarray(record.embedding, dtype=np.float32) for record in records]
    width = dimensions or rows[0].size
    for record, row in zip(records, rows, strict=True):
        if row.shape != (width,):
            raise DimensionMismatch(
                f"the vector of {record.id!r} has shape {row.shape} where {width} dimensions are expected; "
                "use the model the collection was embedded with, or embed the collection again",
                details={"id": record.id, "expected": width, "actual": int(row.size)},
            )
    matrix = np.stack(rows)
    try:
        return normalise(matrix)
    except InvalidArgument:
        lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
        bad = records[int(np.flatnonzero(~np.isfinite(lengths) | (lengths < 1e-30))[0])].id
        raise InvalidArgument(
            f"the vector of {bad!r} is zero, infinite or not a number; it has no direction to search by",
            details={"id": bad},
        ) from None


def _model(records: Sequence[VectorRecord]) -> str:
    models = {record.model for record in records}
    if len(models) > 1:
        raise ModelMismatch(
            f"one collection, one model; these records come from {', '.join(sorted(map(repr, models)))}",
            details={"models": sorted(models)},
        )
    return models.pop() if models else ""


def stored_text(text: str) -> Text:
    """A text as a column holds it."""
    return text if is_encodable(text) else text.encode("utf-8", "surrogatepass")


def read_text(stored: Text) -> str:
    """The text that `stored_text` kept."""
    return stored if isinstance(stored, str) else stored.decode("utf-8", "surrogatepass")
