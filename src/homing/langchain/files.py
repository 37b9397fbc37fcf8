"""Documents by the file they came from: how many of one file, and whether they stand together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

KEYS = ("fileName", "file_name", "filename", "source")
"""Where the name of a file stands in the metadata; the first that is there counts."""


def file_name(metadata: Mapping[str, Any]) -> str | None:
    """The file that a document came from; None where its metadata does not tell."""
    return next((str(metadata[key]) for key in KEYS if metadata.get(key) is not None), None)


def capped(ranked: Iterable[T], most: int | None, file_of: Callable[[T], str | None]) -> list[T]:
    """The same order without what is beyond the first `most` of a file; what has no file always stays."""
    taken: Counter[str] = Counter()
    kept = []
    for one in ranked:
        name = file_of(one)
        if most is not None and name is not None:
            taken[name] += 1
            if taken[name] > most:
                continue
        kept.append(one)
    return kept


def grouped(ranked: Sequence[T], file_of: Callable[[T], str | None]) -> list[T]:
    """Files in the order of their best document, the documents of each together, in their own order."""
    groups: dict[object, list[T]] = {}
    for place, one in enumerate(ranked):
        name = file_of(one)
        groups.setdefault(name if name is not None else place, []).append(one)
    return [one for group in groups.values() for one in group]
