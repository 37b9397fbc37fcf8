"""What is handed to `upsert`, checked and put in order once for every engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from homing.errors import DimensionMismatch, InvalidArgument, ModelMismatch
from homing.records import VectorRecord
from homing.stores.arguments import check_metadata, checked_name, checked_text
from homing.vectors import Matrix, normalise


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one collection, each id once, by id.

    `embedded` says which of them have a vector; row `i` of `vectors`, at unit length, belongs to `embedded[i]`.
    """

    collection: str
    records: list[VectorRecord]
    embedded: list[int]
    vectors: Matrix
    model: str


def batches(records: Iterable[VectorRecord], dimensions: int | None = None) -> list[Batch]:
    """One batch per collection, by name. Of records with one key the last wins.

    Raises InvalidArgument for what no store can hold, DimensionMismatch for vectors that are not `dimensions` wide or
    not all of one width, ModelMismatch for vectors of two models.
    """
    latest: dict[str, dict[str, VectorRecord]] = {}
    for record in records:
        if not isinstance(record, VectorRecord):
            raise InvalidArgument(f"upsert takes VectorRecords; got {type(record).__name__}")
        _check(record)
        latest.setdefault(record.collection, {})[record.id] = record
    return [_batch(name, [by_id[key] for key in sorted(by_id)], dimensions) for name, by_id in sorted(latest.items())]


def _check(record: VectorRecord) -> None:
    checked_name(record.collection, "collection")
    checked_name(record.id, "id")
    checked_text(record.text, f"the text of {record.id!r}")
    check_metadata(record.metadata)
    if record.keywords is not None:
        checked_text(record.keywords, f"the keywords of {record.id!r}")


def _batch(collection: str, records: list[VectorRecord], dimensions: int | None) -> Batch:
    embedded = [index for index, record in enumerate(records) if record.embedding is not None]
    chosen = [records[index] for index in embedded]
    return Batch(collection, records, embedded, _vectors(chosen, dimensions), _model(chosen))


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
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
    bad = np.flatnonzero(~np.isfinite(lengths) | (lengths < 1e-30))
    if len(bad):
        name = records[int(bad[0])].id
        raise InvalidArgument(
            f"the vector of {name!r} is zero, infinite or not a number; it has no direction to search by",
            details={"id": name},
        )
    return normalise(matrix)


def _model(records: Sequence[VectorRecord]) -> str:
    models = {record.model for record in records}
    if len(models) > 1:
        raise ModelMismatch(
            f"one collection, one model; these records come from {', '.join(sorted(map(repr, models)))}",
            details={"models": sorted(models)},
        )
    return models.pop() if models else ""
