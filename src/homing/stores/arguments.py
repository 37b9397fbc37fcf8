"""What callers hand to a store, checked once for every engine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from homing.errors import DimensionMismatch, InvalidArgument
from homing.stores.store import MAX_LIMIT


def checked_name(value: object, what: str) -> str:
    """A collection name or a record id: text that every engine can hold as a key."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{what} is text; got {type(value).__name__}")
    if not value:
        raise InvalidArgument(f"{what} is empty; give it at least one character")
    if "\0" in value:
        raise InvalidArgument(f"{what} {value!r} contains a NUL character; remove it")
    if not is_encodable(value):
        raise InvalidArgument(f"{what} {value!r} contains half of a surrogate pair; decode the text it came from")
    return value


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


def checked_space(model: object, dimensions: object, width: int | None) -> None:
    """The identity and width of a model that is to be staged; `width` is what the store was opened for, if anything."""
    checked_name(model, "model")
    if isinstance(dimensions, bool) or not isinstance(dimensions, int) or dimensions < 1:
        raise InvalidArgument(f"dimensions is a whole number of at least 1; got {dimensions!r}")
    if width is not None and dimensions != width:
        raise DimensionMismatch(
            f"{model} has {dimensions} dimensions, this store was opened for {width}; open it without a width",
            details={"expected": width, "actual": dimensions},
        )


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
