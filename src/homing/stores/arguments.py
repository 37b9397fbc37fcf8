"""What callers hand to a store, checked once for every engine."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from homing.errors import DimensionMismatch, InvalidArgument, ModelMismatch
from homing.records import VectorRecord
from homing.stores.store import MAX_LIMIT
from homing.vectors import Matrix, normalise

MAX_USER = 200
"""Bytes of a user's name."""
_unescaped = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def checked_name(value: object, what: str) -> str:
    """A collection name or a record id: text that every engine can hold as a key."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{what} is text; got {type(value).__name__}")
    if not value:
        raise InvalidArgument(f"{what} is empty; give it at least one character")
    if "\0" in value:
        raise InvalidArgument(f"{what} {value!r} contains a NUL character; remove it")
    if not value.isascii() and not is_encodable(value):
        raise InvalidArgument(f"{what} {value!r} contains half of a surrogate pair; decode the text it came from")
    return value


def metadata_json(metadata: Mapping[str, Any]) -> str:
    """Metadata as a column holds it."""
    # Chinese takes half the room unescaped; half a surrogate pair survives only escaped.
    found = _unescaped(dict(metadata))
    return found if is_encodable(found) else json.dumps(dict(metadata), separators=(",", ":"))


def is_encodable(text: str) -> bool:
    """Whether a text has a UTF-8 form: half a surrogate pair has none."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def checked_names(values: Sequence[str], what: str) -> list[str]:
    """Several of them; one string is refused, because it would be read as its characters."""
    if isinstance(values, str):
        raise InvalidArgument(f"expected a list of {what}s; got the single text {values!r}: wrap it in a list")
    return [checked_name(value, what) for value in values]


def checked_limit(limit: object) -> int:
    """How many matches are wanted: 0 to `MAX_LIMIT`."""
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise InvalidArgument(f"limit is a whole number; got {limit!r}")
    if not 0 <= limit <= MAX_LIMIT:
        raise InvalidArgument(f"limit is {limit}; it must be between 0 and {MAX_LIMIT}")
    return limit


def checked_text(text: object, what: str) -> str:
    """Any string; everything else is refused."""
    if not isinstance(text, str):
        raise InvalidArgument(f"{what} is text; got {type(text).__name__}")
    return text


def checked_user(user_id: str | int) -> str:
    """The user, who must be one; nothing stands for everybody. `1` and `"1"` are the same user."""
    user = str(user_id) if isinstance(user_id, int) and not isinstance(user_id, bool) else user_id
    if not isinstance(user, str):
        raise InvalidArgument(f"a user is text or a whole number; got {type(user_id).__name__}")
    if not user.strip() or "\0" in user or not is_encodable(user) or len(user.encode()) > MAX_USER:
        raise InvalidArgument(f"a user is 1 to {MAX_USER} bytes of text; got {user_id!r}")
    return user


def check_metadata(metadata: object, what: str = "metadata") -> None:
    """Refuses what JSON cannot hold, and says where it is: `metadata.tags[2]`."""
    if not isinstance(metadata, Mapping):
        raise InvalidArgument(f"{what} is a mapping with text keys; got {type(metadata).__name__}")
    for key, value in metadata.items():
        if not isinstance(key, str):
            raise InvalidArgument(f"{what} has the key {key!r}; keys are text", details={"path": what})
        # Exact types first: nearly every value is one of these, and the call below costs more than the rest together.
        if type(value) is not str and type(value) is not int:
            _check_value(value, f"{what}.{key}")


def _check_value(value: Any, path: str) -> None:
    if value is None or isinstance(value, str | bool | int):
        return
    if isinstance(value, float):
        if math.isfinite(value):
            return
        raise InvalidArgument(f"{path} is {value}, which JSON cannot hold; use null", details={"path": path})
    if isinstance(value, Mapping):
        check_metadata(value, path)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check_value(item, f"{path}[{index}]")
    else:
        raise InvalidArgument(
            f"{path} is a {type(value).__name__}, which JSON cannot hold; make it text, a number, a list or a mapping",
            details={"path": path},
        )


def check_fits(collection: str, held: str, dimensions: int, model: str, width: int) -> None:
    """Refuses vectors that cannot stand beside those of the model that serves a collection."""
    if held != model:
        raise ModelMismatch(
            f"collection {collection!r} holds vectors of {held!r}, got vectors of {model!r}; "
            "vectors of two models cannot be compared: use that model, or embed the collection again",
            details={"collection": collection, "expected": held, "actual": model},
        )
    check_width(model, dimensions, width)


def check_width(model: str, dimensions: int, width: int) -> None:
    """Refuses vectors that are not as wide as those of the same model that are there."""
    if width != dimensions:
        raise DimensionMismatch(
            f"the vectors of {model!r} that are there have {dimensions} dimensions, not {width}; use the model they "
            "were made with, or give the other one an identity that says its width",
            details={"expected": dimensions, "actual": width},
        )


def check_query(collection: str, held: str, dimensions: int, width: int, model: str = "") -> None:
    """Refuses a query vector, of a model if one is given, that cannot be compared with those of a collection."""
    # Which model it is comes first: who hears that another one answers by now can ask with that.
    if model and model != held:
        raise ModelMismatch(
            f"collection {collection!r} holds vectors of {held!r}, the query is one of {model!r}; "
            "ask with the model of the collection, or embed the collection again",
            details={"collection": collection, "expected": held, "actual": model},
        )
    if width != dimensions:
        raise DimensionMismatch(
            f"collection {collection!r} holds vectors of {dimensions} dimensions, the query has {width}; "
            "embed it with the model of the collection",
            details={"expected": dimensions, "actual": width},
        )


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
