"""Moves everything from one store to another, whichever engines they are.

Records go over by collection and id, in batches. With each batch a bookmark is written, in the same call and not before
it: a copy that was killed goes on where it stopped. At the end the two stores are compared by a checksum
of everything their records are made of, every bit of a vector included; then the bookmark is removed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from homing.errors import InvalidArgument, StoreError
from homing.records import VectorRecord
from homing.stores.store import CollectionInfo
from homing.vectors import pack

BOOKMARK = "homing:copy"
"""The collection in which an unfinished copy remembers how far it is."""
BATCH = 1_000
BATCH_CHARACTERS = 4_000_000
"""A batch ends at so many characters of text too, so that long texts do not fill the memory."""

Progress = Callable[[int, int], None]
"""Called with how many records are done, of how many. Each counts twice: when it is copied and when it is compared."""


class Copyable(Protocol):
    """As much of a `Store` as a copy needs. What is last in an `upsert` may be written last."""

    def collections(self) -> list[CollectionInfo]: ...

    def records(self, collection: str) -> Iterator[VectorRecord]: ...

    def get(self, collection: str, ids: Sequence[str]) -> list[VectorRecord]: ...

    def upsert(self, records: Iterable[VectorRecord]) -> int: ...

    def drop(self, collection: str) -> int: ...


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy did. `resumed` is how many of the records an earlier, interrupted run had brought over."""

    collections: int
    records: int
    resumed: int
    checksum: str


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Of which source a copy is, and the last of its records that is in the target."""

    source: str
    collection: str = ""
    last: str = ""
    done: int = 0

    def passed(self, record: VectorRecord) -> bool:
        """Whether a record is over there already."""
        return (record.collection, record.id) <= (self.collection, self.last)

    def moved(self, records: list[VectorRecord]) -> Bookmark:
        """The bookmark after these."""
        return Bookmark(self.source, records[-1].collection, records[-1].id, self.done + len(records))

    def record(self) -> VectorRecord:
        """As it is kept in the target."""
        place = {"source": self.source, "collection": self.collection, "last": self.last, "done": self.done}
        return VectorRecord("bookmark", BOOKMARK, None, place)


@dataclass
class Checksum:
    """Of any number of records, in whatever order they come."""

    count: int = 0
    total: int = field(default=0, repr=False)

    def add(self, record: VectorRecord) -> None:
        """Take a record in."""
        self.count += 1
        self.total = (self.total + int.from_bytes(_digest(record))) % 2**128

    def __str__(self) -> str:
        return f"{self.total:032x}"


def copy_store(
    source: Copyable,
    target: Copyable,
    *,
    progress: Progress = lambda done, total: None,
    before: Callable[[], None] | None = None,
) -> Copied:
    """Copy every collection; returns when the target was compared with the source and holds the same.

    `before` is called once the target is known to be the right one, each time that a copy is begun or goes on.

    The target must be empty, or hold what an earlier copy of the same, unchanged source left when it was interrupted;
    otherwise InvalidArgument, and it stays as it is. If somebody writes to one of the stores meanwhile, or if anything
    was changed on the way, the comparison raises StoreError.
    """
    infos = source.collections()
    found = bookmark = _bookmark(source, target, infos)
    if before is not None:
        target.upsert([bookmark.record()])
        before()
    done, total = 0, 2 * sum(info.records for info in infos)
    sent, arrived = Checksum(), Checksum()
    for batch in in_batches(_all(source, infos)):
        fresh = [record for record in batch if not bookmark.passed(record)]
        if fresh:
            bookmark = bookmark.moved(fresh)
            target.upsert([*fresh, bookmark.record()])
        for record in batch:
            sent.add(record)
        done += len(batch)
        progress(done, total)
    for batch in in_batches(_all(target, infos)):
        for record in batch:
            arrived.add(record)
        done += len(batch)
        progress(done, total)
    _check_equal(sent, arrived, infos, target)
    target.drop(BOOKMARK)
    return Copied(len(infos), sent.count, found.done, str(sent))


def _bookmark(source: Copyable, target: Copyable, infos: list[CollectionInfo]) -> Bookmark:
    """Where the copy stands; at the beginning for an empty target. Refuses a target that holds anything else."""
    if any(info.name == BOOKMARK for info in infos):
        raise InvalidArgument("the source is itself an unfinished copy; finish that copy first")
    identity = _identity(source, infos)
    held = sorted(info.name for info in target.collections())
    if not held:
        return Bookmark(identity)
    if BOOKMARK not in held:
        raise InvalidArgument(
            f"the target is not empty: it has the collections {', '.join(map(repr, held[:3]))}; copy to an empty one",
            details={"collections": held[:10]},
        )
    [kept] = target.get(BOOKMARK, ["bookmark"])
    found = Bookmark(**kept.metadata)
    if found.source != identity:
        raise InvalidArgument(
            "the target holds part of a copy of something else, or the source was changed since; copy to an empty one",
            details={"records": found.done},
        )
    return found


def _identity(source: Copyable, infos: list[CollectionInfo]) -> str:
    """Tells a source by what is in it, so that another spelling of its address is still the same source."""
    seen = hashlib.blake2b(digest_size=16)
    for info in infos:
        seen.update(json.dumps([info.name, info.records, info.embedded, info.model]).encode())
        first = next(iter(source.records(info.name)), None)
        seen.update(b"" if first is None else _digest(first))
    return seen.hexdigest()


def _all(store: Copyable, infos: list[CollectionInfo]) -> Iterator[VectorRecord]:
    for name in sorted(info.name for info in infos):
        yield from store.records(name)


class HasText(Protocol):
    """A record, or what becomes one."""

    @property
    def text(self) -> str: ...


T = TypeVar("T", bound=HasText)


def in_batches(rows: Iterable[T], most: int = BATCH, characters: int = BATCH_CHARACTERS) -> Iterator[list[T]]:
    """Rows in their order, so many at a time; a batch ends at so many characters of text, too."""
    batch: list[T] = []
    length = 0
    for row in rows:
        batch.append(row)
        length += len(row.text)
        if len(batch) == most or length >= characters:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch


def _digest(record: VectorRecord) -> bytes:
    parts = [record.collection, record.id, record.text, record.keywords, record.model, dict(record.metadata)]
    seen = hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16)
    seen.update(b"" if record.embedding is None else pack(record.embedding))
    return seen.digest()


def _check_equal(sent: Checksum, arrived: Checksum, infos: list[CollectionInfo], target: Copyable) -> None:
    names = {info.name for info in target.collections()} - {BOOKMARK}
    if arrived == sent and names == {info.name for info in infos}:
        return
    raise StoreError(
        f"the copy differs from its source: {arrived.count} of {sent.count} records, checksum {arrived}, not {sent}; "
        "was one of the stores written meanwhile? Copy again, to an empty target",
        details={"sent": sent.count, "arrived": arrived.count},
    )
