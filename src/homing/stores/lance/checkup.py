"""Whether a store is whole: tables can be read to their end, keys are single, and texts, words and vectors agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from homing.errors import StoreError
from homing.records import text_hash
from homing.stores.lance.catalog import Catalog
from homing.stores.lance.faults import translated
from homing.stores.lance.rows import Space, spaces_of, texts_of, words_of
from homing.stores.lance.table import Table


def findings(catalog: Catalog) -> Iterator[str]:
    """What is wrong, a sentence each."""
    for name, entry in sorted(catalog.entries().items()):
        if entry.state != "live":
            yield f"collection {name!r} was left half changed ({entry.state}); the next write mends it"
            continue
        try:
            yield from _table(catalog.open(entry), name)
        except StoreError as error:
            yield f"collection {name!r} cannot be read: {error.message}"


def _table(table: Table, name: str) -> Iterator[str]:
    snapshot = table.snapshot()
    seen: set[str] = set()
    wrong: Counter[str] = Counter()
    with translated(table.database.address):
        for batch in snapshot.search().limit(None).to_batches():
            for row, vectors in _read(batch):
                wrong.update(_problems(row, vectors, twice=row["id"] in seen))
                seen.add(row["id"])
    for problem, count in wrong.items():
        yield f"{count} times in collection {name!r}: {problem}"


def _read(batch: Any) -> Iterator[tuple[dict[str, Any], dict[Space, bool]]]:
    """Rows without their vectors, and which of those there are."""
    spaces = spaces_of(batch.schema)
    there = {space: batch.column(space.column).is_valid().to_pylist() for space in spaces}
    for at, row in enumerate(batch.drop_columns([space.column for space in spaces]).to_pylist()):
        yield row, {space: there[space][at] for space in spaces}


def _problems(row: dict[str, Any], vectors: Mapping[Space, bool], *, twice: bool) -> Iterator[str]:
    """What is wrong with a row."""
    text, keywords = texts_of(row)
    if twice:
        yield "a record is there twice; delete it and write it again"
    if text_hash(text) != row["text_hash"]:
        yield "a text is not the one that was written; write the record again"
    if words_of(text, keywords) != row["words"]:
        yield "a record is found by other words than its own; write it again"
    for space, there in vectors.items():
        made_of = row[space.hashes]
        if there != (made_of is not None):
            yield f"a vector of {space.model!r} is lost, or belongs to no text; write the record again"
        elif made_of not in (None, row["text_hash"]):
            yield f"a vector of {space.model!r} was made for another text than the record has; embed it again"
