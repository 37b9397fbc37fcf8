"""Brings documents to new texts and names: text, places, words and the work for vectors in one transaction."""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import overload

from homing.database import Transaction
from homing.documents import archive
from homing.documents.archive import Row
from homing.documents.editing import Edit, edit
from homing.documents.layout import PARAGRAPHS, WINDOWS, Stored, embedded_text
from homing.documents.records import Namespace
from homing.engine import Engine
from homing.engine.work import INTERACTIVE
from homing.errors import InvalidArgument, NotFound, StoreCorrupt
from homing.files import FileText
from homing.records import Metadata, VectorRecord
from homing.text.terms import terms_ahead

REMEMBERED = 8_000_000
"""Characters of the documents written last that are kept in memory, so that the next edit finds its place at once."""
TRIES = 3
"""How often an edit is worked out beforehand. While others keep changing the document, it is then worked out inside the
transaction, where they have to wait."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The format of a file, when it was uploaded, and where its pages, sheets or chapters begin in the text.

    A document that was not uploaded has none of these.
    """

    format: str = ""
    uploaded_at: float = 0.0
    parts: tuple[tuple[int, str], ...] = ()

    @staticmethod
    def of(read: FileText, uploaded_at: float) -> SourceFile:
        """What is to be known of a file that was just read."""
        return SourceFile(read.format, uploaded_at, tuple((part.start, part.name) for part in read.parts))

    @staticmethod
    def read(kept: str) -> SourceFile:
        """As it was kept."""
        fields = json.loads(kept)
        return SourceFile(**{**fields, "parts": tuple((start, name) for start, name in fields.get("parts", ()))})

    def keep(self) -> str:
        """As it is kept."""
        return json.dumps(asdict(self), separators=(",", ":"))

    def edited(self) -> SourceFile:
        """What is still true after somebody has changed the text: its pages are no longer where they were."""
        return replace(self, parts=())

    def part_at(self, offset: int) -> str:
        """The name of the page, sheet or chapter that a character stands in; empty where there are none."""
        at = bisect_right(self.parts, offset, key=lambda part: part[0]) - 1
        return self.parts[at][1] if at >= 0 else ""


@dataclass(frozen=True, slots=True)
class _SaveRequest:
    """What a document is to say; `about` is the file that it was read from, where it is an upload."""

    project: str
    document: str
    text: str
    priority: int
    about: SourceFile | None

    def cut(self, row: Row | None) -> str:
        """How it is cut: an upload in windows, and everything else as it was."""
        return WINDOWS if self.about is not None else PARAGRAPHS if row is None else row.cut

    def kept_about(self, row: Row) -> str:
        """What is known of its file afterwards."""
        if self.about is not None:
            return self.about.keep()
        return row.about if row.cut == PARAGRAPHS else SourceFile.read(row.about).edited().keep()


@dataclass(frozen=True, slots=True)
class _Plan:
    """What that changes in a document as it was seen; `row` is None where there was none."""

    row: Row | None
    stored: Stored
    change: Edit

    def outcome(self, row: Row, text: str) -> Stored:
        """The document as it is stored afterwards."""
        before, rewrite = self.stored.chunks, self.change.rewrite
        between = (block.chunks for block in rewrite.between)
        chunks = (*before[: rewrite.front], *between, *before[len(before) - rewrite.back :])
        return Stored(text, row.blocks, chunks)


class Writer:
    """Writes documents. A write that returns is durable and complete; one that raises did not happen.

    Safe from several threads and processes: who finds that a document has changed since it was read looks again.
    """

    def __init__(self, engine: Engine, namespace: Namespace, *, settle: float) -> None:
        self._engine = engine
        self._owner = namespace.owner
        self._collection = engine.collection(namespace.collection)
        self._settle = settle
        self._known: dict[tuple[int, int], Stored] = {}
        self._lock = threading.Lock()

    def save(
        self,
        project: str,
        document: str,
        text: str,
        *,
        priority: int,
        about: SourceFile | None = None,
        planned: Callable[[int], None] = lambda chunks: None,
    ) -> Saved:
        """Make the document say this.

        `planned` is called with how many chunks it will have, before anything is written; what it raises ends that.
        """
        asked = _SaveRequest(project, document, text, priority, about)
        for _ in range(TRIES):
            try:
                row, stored = self._engine.database.read(lambda transaction: self._look(transaction, asked))
            except StoreCorrupt:
                # What it said is damaged; nothing of it is needed, for this is what it says now.
                self.delete(project, document)
                continue
            if row is not None and stored.text == text and row.cut == asked.cut(row):
                return Saved(unchanged=ChunkIds(row.token, [held.numbers for held in stored.chunks]))
            # All that can be worked out is, before the database is locked.
            plan = _plan(asked, row, stored)
            planned(plan.change.chunks)
            saved = self._write(asked, plan)
            if saved is not None:
                return saved
        saved = self._write(asked, None)
        assert saved is not None
        return saved

    def delete(self, project: str, document: str) -> bool:
        """Take out a document with everything that was made of it; whether there was one."""

        def work(transaction: Transaction) -> bool:
            row = archive.find(transaction, self._owner, project, document)
            if row is None:
                return False
            self._collection.delete(archive.remove(transaction, row), transaction)
            return True

        return self._engine.database.write(work, self._collection.scope)

    def place(self, project: str, document: str, to_project: str, to_document: str) -> None:
        """Give a document another name. Its chunks keep their ids and their vectors."""

        def work(transaction: Transaction) -> None:
            row = archive.find(transaction, self._owner, project, document)
            if row is None:
                raise missing(project, document)
            if (project, document) == (to_project, to_document):
                return
            if archive.find(transaction, self._owner, to_project, to_document) is not None:
                raise InvalidArgument(
                    f"there is a document {to_document!r} in project {to_project!r} already; delete it first",
                    details={"project": to_project, "document": to_document},
                )
            moved = archive.place(transaction, row, to_project, to_document)
            # What says the same keeps its vectors, and what waits for one goes on waiting: nothing is asked for.
            stored = archive.stored(transaction, moved)
            self._engine.store.write(records_of(moved, stored, self._collection.name), transaction)

        self._engine.database.write(work, self._collection.scope)

    def _look(self, transaction: Transaction, asked: _SaveRequest) -> tuple[Row | None, Stored]:
        """The document as it is stored, from memory where this process wrote it last."""
        row = archive.find(transaction, self._owner, asked.project, asked.document)
        if row is None:
            return None, Stored()
        return row, self._known.get(row.version) or archive.stored(transaction, row)

    def _write(self, asked: _SaveRequest, plan: _Plan | None) -> Saved | None:
        """Carry out a plan, or make one inside the transaction; None where the document is another than it was for."""

        def work(transaction: Transaction) -> tuple[Row, Stored, Saved] | None:
            if plan is None:
                chosen = _plan(asked, *self._look(transaction, asked))
            elif _version(archive.find(transaction, self._owner, asked.project, asked.document)) == _version(plan.row):
                chosen = plan
            else:
                return None
            return self._apply(transaction, asked, chosen)

        changed = () if plan is None else plan.change.changed
        with terms_ahead(embedded_text(asked.text[one.start : one.end]) for one in changed):
            done = self._engine.database.write(work, self._collection.scope)
        if done is None:
            return None
        row, stored, saved = done
        self._remember(row, stored)
        if saved.changed:
            self._collection.notify()
        return saved

    def _apply(self, transaction: Transaction, asked: _SaveRequest, plan: _Plan) -> tuple[Row, Stored, Saved]:
        row = plan.row or archive.create(transaction, self._owner, asked.project, asked.document)
        change = plan.change
        cut, about = asked.cut(plan.row), asked.kept_about(row)
        said = replace(row, chunks=change.chunks, following=change.following, cut=cut, about=about)
        written = archive.write(transaction, said, change.rewrite)
        stored = plan.outcome(written, asked.text)
        removed = [row.chunk_id(number) for number in change.removed]
        if removed:
            self._collection.delete(removed, transaction)
        if written.cut == WINDOWS:
            changed = self._place_windows(transaction, plan, written, stored)
        else:
            name = self._collection.name
            changed = [record_of(row, name, one.number, asked.text[one.start : one.end]) for one in change.changed]
        # What was uploaded is complete: only what is typed rests before it is embedded.
        settle = self._settle if asked.priority == INTERACTIVE and asked.about is None else 0.0
        self._collection.write(changed, transaction, priority=asked.priority, settle=settle)
        moved = tuple(row.chunk_id(number) for number in change.moved)
        ids = tuple(one.id for one in changed)
        return written, stored, Saved(ids, ChunkIds(row.token, change.unchanged), moved, tuple(removed))

    def _place_windows(self, transaction: Transaction, plan: _Plan, row: Row, stored: Stored) -> list[VectorRecord]:
        """The records of windows that say something new. Of those that only stand elsewhere now, the place is written:
        they keep their vectors."""
        name = self._collection.name
        before = {} if plan.row is None else {one.id: one.metadata for one in records_of(plan.row, plan.stored, name)}
        new = {row.chunk_id(one.number) for one in plan.change.changed}
        records = list(records_of(row, stored, name))
        placed = [one for one in records if one.id not in new and one.metadata != before.get(one.id)]
        self._engine.store.write(placed, transaction)
        return [one for one in records if one.id in new]

    def _remember(self, row: Row, stored: Stored) -> None:
        with self._lock:
            self._known.pop((row.key, row.revision - 1), None)
            self._known[row.version] = stored
            while len(self._known) > 1 and sum(len(one.text) for one in self._known.values()) > REMEMBERED:
                del self._known[next(iter(self._known))]


def record_of(row: Row, collection: str, number: int, text: str, place: Metadata | None = None) -> VectorRecord:
    """The record of one chunk, without a vector."""
    metadata = {"project": row.project, "document": row.id, **(place or {})}
    return VectorRecord(row.chunk_id(number), collection, None, metadata, embedded_text(text))


def records_of(row: Row, stored: Stored, collection: str) -> Iterator[VectorRecord]:
    """The records of a document, in its order. Windows of a file also say where in it they stand."""
    about = SourceFile.read(row.about) if row.cut == WINDOWS else None
    for order, one in enumerate(stored.placed()):
        place = None
        if about is not None:
            part = about.part_at(one.start)
            place = {"fileName": row.id, "part": part, "chunk": order, "start": one.start, "end": one.end}
        yield record_of(row, collection, one.number, stored.text[one.start : one.end], place)


def missing(project: str, document: str) -> NotFound:
    """There is no such document."""
    return NotFound(
        f"there is no document {document!r} in project {project!r}; list the documents of the project to see its names",
        details={"project": project, "document": document},
    )


def _plan(asked: _SaveRequest, row: Row | None, stored: Stored) -> _Plan:
    return _Plan(row, stored, edit(stored, asked.text, 0 if row is None else row.following, asked.cut(row)))


def _version(row: Row | None) -> tuple[int, int] | None:
    return None if row is None else row.version


class ChunkIds(Sequence[str]):
    """The ids of chunks of one document, made when somebody reads them: most callers never do."""

    __slots__ = ("_numbers", "_token")

    def __init__(self, token: str, numbers: Sequence[Sequence[int]]) -> None:
        self._token = token
        self._numbers = numbers

    def __len__(self) -> int:
        return sum(map(len, self._numbers))

    def __iter__(self) -> Iterator[str]:
        return (f"{self._token}.{number}" for numbers in self._numbers for number in numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...

    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


@dataclass(frozen=True, slots=True)
class Saved:
    """What a save did, as ids of chunks.

    `changed` are new or say something else, and are embedded; `unchanged` say the same in the same order, wherever they
    stand now; `moved` say the same at another place; `removed` are gone.
    """

    changed: Sequence[str] = ()
    unchanged: Sequence[str] = ()
    moved: Sequence[str] = ()
    removed: Sequence[str] = ()
