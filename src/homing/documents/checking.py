"""Whether documents and the store agree: each chunk has a record that says the same, and there is no other record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TypeVar

from homing.database import Database, Transaction
from homing.documents import archive
from homing.documents.archive import Row
from homing.documents.layout import Stored
from homing.documents.records import Namespace, records_of
from homing.records import text_hash
from homing.stores.store import Store

PAGE = 500
ROUNDS = 5
"""How often a document is looked at that somebody writes meanwhile."""

T = TypeVar("T")


def disagreements(database: Database, store: Store, namespace: Namespace | None = None) -> Iterator[str]:
    """What does not agree, a sentence each. Reads everything but the vectors, which `Store.check` looks after."""
    own = namespace or Namespace()
    for row in database.read(partial(archive.rows, owner=own.owner)):
        yield from _of_document(database, store, row, own.collection)
    for page in pages(store.ids(own.collection)):
        if lost := strays(database, store, page, own):
            yield f"{len(lost)} records belong to no chunk of a document, {lost[0]!r} for one"
    for table in ("document_blocks", "document_chunks"):
        if count := database.read(partial(_orphans, table=table)):
            yield f"{count} rows of {table} belong to no document"


def current(transaction: Transaction, row: Row) -> tuple[Row, Stored] | None:
    """A document as it is now, if it still is."""
    now = archive.find(transaction, row.owner, row.project, row.id)
    return None if now is None else (now, archive.stored(transaction, now))


def strays(database: Database, store: Store, ids: Sequence[str], own: Namespace) -> list[str]:
    """Which of these ids of records belong to no chunk."""
    known = database.read(partial(archive.existing, owner=own.owner, ids=ids))
    # Whatever was deleted since the ids were read is gone from both.
    return [one.id for one in store.get(own.collection, [one for one in ids if one not in known], embeddings=False)]


def pages(items: Iterable[T]) -> Iterator[list[T]]:
    """The items, some at a time."""
    rest = iter(items)
    while page := list(islice(rest, PAGE)):
        yield page


def _orphans(transaction: Transaction, table: str) -> int:
    statement = f"SELECT count(*) FROM {table} WHERE document NOT IN (SELECT key FROM documents)"
    return int(transaction.rows(statement)[0][0])


def _of_document(database: Database, store: Store, row: Row, collection: str) -> list[str]:
    wrong: list[str] = []
    for _ in range(ROUNDS):
        found = database.read(partial(current, row=row))
        wrong = [] if found is None else list(_compared(*found, store, collection))
        if not wrong:
            break
    return wrong


def _compared(row: Row, stored: Stored, store: Store, collection: str) -> Iterator[str]:
    name = f"document {row.id!r} of project {row.project!r}"
    digests = {row.chunk_id(one.number): one.digest for one in stored.placed()}
    if (row.characters, row.chunks) != (len(stored.text), len(digests)):
        yield f"{name} counts {row.characters} characters and {row.chunks} chunks, and has others"
    for page in pages(records_of(row, stored, collection)):
        known = {one.id: one for one in store.get(collection, [one.id for one in page], embeddings=False)}
        for one in page:
            held = known.get(one.id)
            if text_hash(one.text) != digests[one.id].hex():
                yield f"chunk {one.id!r} of {name} does not say what it was cut out for"
            if held is None:
                yield f"chunk {one.id!r} of {name} is not in the index"
            elif held.text != one.text:
                yield f"the index has another text for chunk {one.id!r} of {name}"
            elif held.metadata != one.metadata:
                yield f"the index has chunk {one.id!r} of {name} in another place"
