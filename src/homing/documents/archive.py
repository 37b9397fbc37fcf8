"""Documents in the shared database: their texts, and which chunk stands where."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from homing.database.sqlite import SqliteDatabase
from homing.documents.layout import Block, Held, NewBlock, Placed, Rewrite, Stored
from homing.stores.arguments import is_encodable

if TYPE_CHECKING:
    from apsw import Connection

# `layout` lists the blocks in order: [[key, length, wide], …]. A chunk's id is the token of its document and its number
# there, neither of which is ever used again. Texts are TEXT, or a BLOB where UTF-8 cannot hold them.
STEPS = (
    """
    CREATE TABLE documents(
        key INTEGER PRIMARY KEY AUTOINCREMENT, project TEXT NOT NULL, id TEXT NOT NULL, token TEXT NOT NULL UNIQUE,
        revision INTEGER NOT NULL, following INTEGER NOT NULL, characters INTEGER NOT NULL, chunks INTEGER NOT NULL,
        layout TEXT NOT NULL, updated REAL NOT NULL, UNIQUE(project, id)) STRICT;
    CREATE TABLE document_blocks(
        key INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL, text ANY NOT NULL) STRICT;
    CREATE INDEX document_blocks_by_document ON document_blocks(document);
    CREATE TABLE document_chunks(
        document INTEGER NOT NULL, number INTEGER NOT NULL, block INTEGER NOT NULL, start INTEGER NOT NULL,
        length INTEGER NOT NULL, digest BLOB NOT NULL, updated REAL NOT NULL,
        PRIMARY KEY(document, number)) STRICT, WITHOUT ROWID;
    CREATE INDEX document_chunks_by_block ON document_chunks(document, block);
    CREATE TABLE document_drops(collection TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
    CREATE TABLE document_settings(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
    """,
)
COLLECTION = "documents:"


def collection_of(project: str) -> str:
    """The collection that holds the chunks of a project, and of no other."""
    return COLLECTION + project


COLUMNS = "key, project, id, token, revision, following, characters, chunks, layout, updated"


@dataclass(frozen=True, slots=True)
class Row:
    """A document as its row says."""

    key: int
    project: str
    id: str
    token: str
    revision: int
    following: int
    characters: int
    chunks: int
    blocks: tuple[Block, ...]
    updated: float

    def chunk_id(self, number: int) -> str:
        """The id of one of its chunks."""
        return f"{self.token}.{number}"

    def starts(self) -> dict[int, tuple[int, int]]:
        """Where each block begins, in characters and in UTF-16 units."""
        found: dict[int, tuple[int, int]] = {}
        at = units = 0
        for block in self.blocks:
            found[block.key] = (at, units)
            at, units = at + block.length, units + block.length + block.wide
        return found


@dataclass(frozen=True, slots=True)
class Found:
    """A chunk that was looked up by its id, with its text; `before` is what precedes it in its block.

    `start` and `end` are counted in the document, `unit` is where its block begins in UTF-16 units.
    """

    id: str
    document: Row
    text: str
    start: int
    end: int
    updated: float
    digest: bytes
    before: str
    unit: int


class Archive:
    """The tables of documents. Reading methods take a connection, so that one answer comes from one snapshot."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.database = database
        database.migrate("documents", STEPS)

    def find(self, connection: Connection, project: str, document: str) -> Row | None:
        """The row of a document, if there is one."""
        row: tuple[Any, ...] | None = connection.execute(
            f"SELECT {COLUMNS} FROM documents WHERE project = ? AND id = ?", (project, document)
        ).fetchone()
        return None if row is None else _row(row)

    def rows(self, connection: Connection, project: str | None = None) -> list[Row]:
        """Every document, or those of a project, by name."""
        where, bindings = ("", ()) if project is None else ("WHERE project = ?", (project,))
        found: list[tuple[Any, ...]] = connection.execute(
            f"SELECT {COLUMNS} FROM documents {where} ORDER BY project, id", bindings
        ).fetchall()
        return [_row(row) for row in found]

    def text(self, connection: Connection, row: Row) -> str:
        """The whole text of a document."""
        stored: list[tuple[Any, ...]] = connection.execute(
            "SELECT key, text FROM document_blocks WHERE document = ?", (row.key,)
        ).fetchall()
        texts = dict(stored)
        return "".join(_read(texts[block.key]) for block in row.blocks)

    def stored(self, connection: Connection, row: Row) -> Stored:
        """A document with its text and all of its chunks."""
        held: dict[int, list[Placed]] = {block.key: [] for block in row.blocks}
        found: list[tuple[Any, ...]] = connection.execute(
            "SELECT number, block, start, length, digest, updated FROM document_chunks WHERE document = ?", (row.key,)
        ).fetchall()
        for number, block, start, length, digest, updated in found:
            held[block].append(Placed(number, start, start + length, digest, updated))
        chunks = tuple(Held.of(sorted(held[block.key], key=lambda one: one.start)) for block in row.blocks)
        return Stored(self.text(connection, row), row.blocks, chunks)

    def look_up(self, connection: Connection, ids: Iterable[str]) -> dict[str, Found]:
        """The chunks that exist, by id, with their texts and places."""
        wanted: dict[str, list[int]] = {}
        for one in ids:
            token, _, number = one.rpartition(".")
            if token and number.isdecimal():
                wanted.setdefault(token, []).append(int(number))
        found: dict[str, Found] = {}
        for token, numbers in wanted.items():
            row: tuple[Any, ...] | None = connection.execute(
                f"SELECT {COLUMNS} FROM documents WHERE token = ?", (token,)
            ).fetchone()
            if row is not None:
                found.update(self._within(connection, _row(row), numbers))
        return found

    def _within(self, connection: Connection, row: Row, numbers: Sequence[int]) -> Iterator[tuple[str, Found]]:
        starts = row.starts()
        found: list[tuple[Any, ...]] = connection.execute(
            "SELECT c.number, c.block, c.start, c.length, c.digest, c.updated, b.text FROM document_chunks c "
            "JOIN document_blocks b ON b.key = c.block "
            "WHERE c.document = ? AND c.number IN (SELECT value FROM json_each(?))",
            (row.key, json.dumps(list(numbers))),
        ).fetchall()
        for number, block, start, length, digest, updated, stored in found:
            whole = _read(stored)
            at, unit = starts[block]
            chunk = row.chunk_id(number)
            yield (
                chunk,
                Found(
                    chunk,
                    row,
                    whole[start : start + length],
                    at + start,
                    at + start + length,
                    updated,
                    digest,
                    whole[:start],
                    unit,
                ),
            )

    def create(self, connection: Connection, project: str, document: str) -> Row:
        """A new, empty document."""
        token = secrets.token_hex(6)
        connection.execute(
            "INSERT INTO documents(project, id, token, revision, following, characters, chunks, layout, updated) "
            "VALUES (?, ?, ?, 0, 0, 0, 0, '[]', ?)",
            (project, document, token, time.time()),
        )
        made = self.find(connection, project, document)
        assert made is not None
        return made

    def write(self, connection: Connection, row: Row, change: Rewrite, *, chunks: int, following: int) -> Row:
        """Replace the blocks between those that stay; returns the row as it is now."""
        stop = len(row.blocks) - change.back
        for block in row.blocks[change.front : stop]:
            connection.execute("DELETE FROM document_blocks WHERE key = ?", (block.key,))
            connection.execute("DELETE FROM document_chunks WHERE document = ? AND block = ?", (row.key, block.key))
        written = [self._write_block(connection, row, block) for block in change.between]
        blocks = (*row.blocks[: change.front], *written, *row.blocks[stop:])
        now = replace(
            row,
            revision=row.revision + 1,
            following=following,
            characters=sum(block.length for block in blocks),
            chunks=chunks,
            blocks=blocks,
            updated=time.time(),
        )
        layout = json.dumps([[block.key, block.length, block.wide] for block in blocks], separators=(",", ":"))
        connection.execute(
            "UPDATE documents SET revision = ?, following = ?, characters = ?, chunks = ?, layout = ?, updated = ? "
            "WHERE key = ?",
            (now.revision, following, now.characters, chunks, layout, now.updated, row.key),
        )
        return now

    def _write_block(self, connection: Connection, row: Row, block: NewBlock) -> Block:
        connection.execute("INSERT INTO document_blocks(document, text) VALUES (?, ?)", (row.key, _stored(block.text)))
        key = connection.last_insert_rowid()
        connection.executemany(
            "INSERT INTO document_chunks(document, number, block, start, length, digest, updated) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (row.key, one.number, key, one.start, one.end - one.start, one.digest, one.updated)
                for one in block.chunks.placed()
            ],
        )
        return Block(key, len(block.text), block.wide)

    def remove(self, connection: Connection, row: Row) -> list[str]:
        """Delete a document; returns the ids that its chunks had."""
        numbers: list[tuple[Any, ...]] = connection.execute(
            "SELECT number FROM document_chunks WHERE document = ?", (row.key,)
        ).fetchall()
        for table in ("document_chunks", "document_blocks"):
            connection.execute(f"DELETE FROM {table} WHERE document = ?", (row.key,))
        connection.execute("DELETE FROM documents WHERE key = ?", (row.key,))
        return [row.chunk_id(number) for (number,) in numbers]


@dataclass(frozen=True, slots=True)
class Backlog:
    """What documents there are in a database, and what of them waits, failed before, or was given up, and why."""

    projects: int
    documents: int
    chunks: int
    waiting: int
    failing: int
    dead: int
    error: str


def look(database: SqliteDatabase) -> Backlog | None:
    """How things stand with the documents of a database; None where there never were any. Makes no tables."""
    with database.reading() as connection:
        if not connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'documents'").get:
            return None
        ours = "collection >= :first AND collection < :last"
        row: tuple[Any, ...] | None = connection.execute(
            "SELECT (SELECT count(DISTINCT project) FROM documents), (SELECT count(*) FROM documents), "
            "(SELECT coalesce(sum(chunks), 0) FROM documents), "
            f"(SELECT count(*) FROM outbox WHERE {ours} AND text IS NOT NULL), "
            f"(SELECT count(error) FROM outbox WHERE {ours}), (SELECT count(*) FROM dead_letters WHERE {ours}), "
            f"coalesce((SELECT error FROM dead_letters WHERE {ours} ORDER BY died DESC LIMIT 1), "
            f"(SELECT error FROM outbox WHERE {ours} AND error IS NOT NULL LIMIT 1), '')",
            {"first": COLLECTION, "last": COLLECTION[:-1] + ";"},
        ).fetchone()
    assert row is not None
    return Backlog(*row)


def _row(row: tuple[Any, ...]) -> Row:
    key, project, name, token, revision, following, characters, chunks, layout, updated = row
    blocks = tuple(Block(*block) for block in json.loads(layout))
    return Row(key, project, name, token, revision, following, characters, chunks, blocks, updated)


def _stored(text: str) -> str | bytes:
    return text if is_encodable(text) else text.encode("utf-8", "surrogatepass")


def _read(stored: str | bytes) -> str:
    return stored if isinstance(stored, str) else stored.decode("utf-8", "surrogatepass")
