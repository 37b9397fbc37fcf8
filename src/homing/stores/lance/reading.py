"""Records read back: by id, in order, by filter, all of them in a check-up; and which models they have vectors of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from homing.errors import StoreError
from homing.records import VectorRecord, text_hash
from homing.stores.filters import AllOf, AnyOf, Compares, Condition, Exists, Filter, Has, Not, matches
from homing.stores.lance.catalog import Catalog
from homing.stores.lance.database import Table, any_of, quoted
from homing.stores.lance.engine import ArrowTable, part, run, translated
from homing.stores.lance.rows import (
    STORED,
    Space,
    attribute,
    find_space,
    records_of,
    serving,
    spaces_of,
    text_of,
    texts_of,
    words_of,
)
from homing.stores.store import ModelInfo

PAGE = 500
OVERFETCH = 3
"""How many times as many rows are asked for at first, where some of them are left out afterwards."""
Found = tuple[float, dict[str, Any]]
"""A measure, and the row that has it."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A filter: the condition that LanceDB is asked with (None for none), and the rest, which it cannot express."""

    condition: str | None
    rest: Filter

    @classmethod
    def by(cls, asked: Filter) -> Narrowed:
        """A filter, taken apart."""
        written = [(one, _sql(one)) for one in asked]
        sql = [text for _, text in written if text is not None]
        return cls(" AND ".join(sql) or None, tuple(one for one, text in written if text is None))

    def __bool__(self) -> bool:
        return self.condition is not None or bool(self.rest)

    def columns(self, wanted: list[str]) -> list[str]:
        """The columns to read, so that the rest can be looked at."""
        return wanted if not self.rest or "metadata" in wanted else [*wanted, "metadata"]

    def passes(self, row: dict[str, Any]) -> bool:
        """Whether a row passes the rest."""
        return not self.rest or matches(self.rest, json.loads(row["metadata"]))

    def filled(self, ask: Callable[[int], list[Found]], limit: int) -> list[Found]:
        """The first `limit` rows that pass, asking for more and more until there are enough or no more exist."""
        reach = limit if not self.rest else limit * OVERFETCH
        while True:
            found = ask(reach)
            kept = [one for one in found if self.passes(one[1])]
            if len(kept) >= limit or len(found) < reach:
                return kept[:limit]
            reach *= 4


def pages(table: Table, ids: list[str], columns: list[str] | None, condition: str = "") -> Iterator[ArrowTable]:
    """The rows with these ids that fulfil a further condition, page by page; without columns, all of theirs."""
    for start in range(0, len(ids), PAGE):
        asked = table.reader.query().where(any_of("id", ids[start : start + PAGE]) + condition)
        yield run((asked if columns is None else asked.select(columns)).to_arrow())


def with_ids(table: Table, collection: str, ids: list[str], *, embeddings: bool = True) -> dict[str, VectorRecord]:
    """The records that exist, with the vectors that are searched or without any."""
    space = serving(table.schema) if embeddings else None
    found = (records_of(page, collection, space) for page in pages(table, ids, _columns(space)))
    return {record.id: record for records in found for record in records}


def texts_with_ids(table: Table, ids: list[str], lacking: str) -> dict[str, str]:
    """The texts of the records that exist; with `lacking`, of those without a vector of this model."""
    space = find_space(table.schema, lacking)
    condition = "" if space is None else f" AND {space.lacking}"
    rows = (row for page in pages(table, ids, ["id", "text", "exact"], condition) for row in page.to_pylist())
    return {row["id"]: text_of(row) for row in rows}


def after(table: Table, collection: str, last: str | None) -> Iterator[VectorRecord]:
    """Every record beyond an id, by id, all as of one commit. Only the ids are held in memory."""
    snapshot = table.snapshot()
    query = snapshot.search().select(["id"]).with_row_id(True).limit(None)
    if last is not None:
        query = query.where(f"id > {quoted(last)}")
    rows = query.to_arrow().sort_by("id")
    space = serving(snapshot.schema)
    columns = _columns(space)
    for start in range(0, len(rows), PAGE):
        page = snapshot.take_row_ids(rows["_rowid"][start : start + PAGE].to_pylist()).select(columns).to_arrow()
        for record in records_of(page.sort_by("id"), collection, space):
            # A key that is there twice (written around us) is one record.
            if record.id != last:
                yield record
            last = record.id


def ids_of(table: Table, asked: Narrowed) -> list[str]:
    """Every id that passes a filter, in order; a key that is there twice is one record."""
    found = table.handle.search() if asked.condition is None else table.handle.search().where(asked.condition)
    rows = found.select(asked.columns(["id"])).limit(None).to_arrow().to_pylist()
    return sorted({row["id"] for row in rows if asked.passes(row)})


def models(table: Table) -> list[ModelInfo]:
    """The models that a table holds vectors of, the one that serves the collection first."""
    counted = [(space, table.count(space.held)) for space in spaces_of(table.schema)]
    return [ModelInfo(space.model, space.dimensions, count, space.serves) for space, count in counted if count]


def served_model(table: Table) -> str:
    """The model that serves the collection; empty where nothing has a vector of it."""
    space = serving(table.schema)
    return space.model if space is not None and table.has(space.held) else ""


def pending(table: Table) -> int:
    """How many records have no vector of the model that serves the collection."""
    space = serving(table.schema)
    return table.count() if space is None else table.count(space.lacking)


def missing(table: Table, model: str, after: str, limit: int) -> list[str]:
    """The next ids of records that have no vector of a model."""
    space = find_space(table.schema, model)
    asked = f"id > {quoted(after)}" + ("" if space is None else f" AND {space.lacking}")
    by_id = part("query").ColumnOrdering(column_name="id")
    found = table.handle.search().where(asked).select(["id"]).order_by([by_id]).limit(limit).to_arrow()
    return list(dict.fromkeys(found["id"].to_pylist()))


def findings(catalog: Catalog) -> Iterator[str]:
    """What is wrong, a sentence each: tables that cannot be read, keys twice, texts, words and vectors that differ."""
    for name, entry in sorted(catalog.entries().items()):
        if entry.state != "live":
            yield f"collection {name!r} was left half changed ({entry.state}); the next write mends it"
            continue
        try:
            yield from _wrong_in(catalog.open(entry), name)
        except StoreError as error:
            yield f"collection {name!r} cannot be read: {error.message}"


def _columns(space: Space | None) -> list[str]:
    return STORED if space is None else [*STORED, space.column]


def _sql(one: Condition) -> str | None:
    """A condition on the attributes column; None for one that LanceDB cannot be asked."""
    match one:
        case Has(key, values):
            return _has(key, values)
        case Exists() | Compares():
            return None
        case Not(part):
            sql = _sql(part)
            return None if sql is None else f"NOT ({sql})"
        case AnyOf(parts) | AllOf(parts):
            known = [sql for part in parts if (sql := _sql(part)) is not None]
            joint = " OR " if isinstance(one, AnyOf) else " AND "
            return f"({joint.join(known)})" if len(known) == len(parts) else None


def _has(key: str, values: tuple[str, ...]) -> str:
    wanted = [quoted(attribute(key, value)) for value in values]
    if not wanted:
        return "false"
    if len(wanted) == 1:
        return f"array_has(attributes, {wanted[0]})"
    return f"array_has_any(attributes, [{', '.join(wanted)}])"


def _wrong_in(table: Table, name: str) -> Iterator[str]:
    snapshot = table.snapshot()
    seen: set[str] = set()
    wrong: Counter[str] = Counter()
    with translated(table.database.address):
        for batch in snapshot.search().limit(None).to_batches():
            for row, vectors in _rows(batch):
                wrong.update(_problems(row, vectors, twice=row["id"] in seen))
                seen.add(row["id"])
    for problem, count in wrong.items():
        yield f"{count} times in collection {name!r}: {problem}"


def _rows(batch: Any) -> Iterator[tuple[dict[str, Any], dict[Space, bool]]]:
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
