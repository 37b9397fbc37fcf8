"""Documents as rows: their texts, and which chunk stands where."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from homing.database import Transaction
from homing.documents.layout import Block, Held, NewBlock, Placed, Rewrite, Stored

COMPONENT = "documents"

# `layout` lists the blocks in order: [[key, length, wide], …]. A chunk's id is the token of its document and its number
# there, neither of which is ever used again. Texts are UTF-8 that may hold NUL and halves of surrogate pairs.
STEPS = (
    """
    CREATE TABLE documents(
        key IDENTITY, project TEXT NOT NULL, id TEXT NOT NULL, token TEXT NOT NULL UNIQUE,
        revision INT64 NOT NULL, following INT64 NOT NULL, characters INT64 NOT NULL, chunks INT64 NOT NULL,
        layout TEXT NOT NULL, updated FLOAT64 NOT NULL, UNIQUE(project, id));
    CREATE TABLE document_blocks(key IDENTITY, document INT64 NOT NULL, text BYTES NOT NULL);
    CREATE INDEX document_blocks_by_document ON document_blocks(document);
    CREATE TABLE document_chunks(
        id TEXT PRIMARY KEY, document INT64 NOT NULL, block INT64 NOT NULL, start INT64 NOT NULL,
        length INT64 NOT NULL, digest BYTES NOT NULL, updated FLOAT64 NOT NULL);
    CREATE INDEX document_chunks_by_block ON document_chunks(document, block);
    CREATE TABLE document_settings(name TEXT PRIMARY KEY, value TEXT NOT NULL);
    """,
)
TOKEN = 12
"""Characters of a document's token."""
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

    @property
    def version(self) -> tuple[int, int]:
        """Differs from that of any other text that this or another document ever had."""
        return self.key, self.revision

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
    before: str
    unit: int


def find(transaction: Transaction, project: str, document: str) -> Row | None:
    """The row of a document, if there is one."""
    found = transaction.rows(f"SELECT {COLUMNS} FROM documents WHERE project = $1 AND id = $2", project, document)
    return _row(found[0]) if found else None


def rows(transaction: Transaction, project: str | None = None) -> list[Row]:
    """Every document, or those of a project, by name."""
    if project is None:
        found = transaction.rows(f"SELECT {COLUMNS} FROM documents ORDER BY project, id")
    else:
        found = transaction.rows(f"SELECT {COLUMNS} FROM documents WHERE project = $1 ORDER BY id", project)
    return [_row(row) for row in found]


def text(transaction: Transaction, row: Row) -> str:
    """The whole text of a document."""
    held: dict[int, bytes] = dict(
        transaction.rows("SELECT key, text FROM document_blocks WHERE document = $1", row.key)
    )
    return "".join(_read(held[block.key]) for block in row.blocks)


def stored(transaction: Transaction, row: Row) -> Stored:
    """A document with its text and all of its chunks."""
    held: dict[int, list[Placed]] = {block.key: [] for block in row.blocks}
    for chunk, block, start, length, digest, updated in transaction.rows(
        "SELECT id, block, start, length, digest, updated FROM document_chunks WHERE document = $1", row.key
    ):
        held[block].append(Placed(int(chunk[TOKEN + 1 :]), start, start + length, bytes(digest), updated))
    chunks = tuple(Held.of(sorted(held[block.key], key=lambda one: one.start)) for block in row.blocks)
    return Stored(text(transaction, row), row.blocks, chunks)


def look_up(transaction: Transaction, ids: Sequence[str]) -> dict[str, Found]:
    """The chunks that exist, by id, with their texts and places, in one statement."""
    if not ids:
        return {}
    documents: dict[int, tuple[Row, dict[int, tuple[int, int]]]] = {}
    blocks: dict[int, str] = {}
    found: dict[str, Found] = {}
    columns = ", ".join(f"d.{name}" for name in COLUMNS.split(", "))
    for chunk, block, start, length, updated, content, *row in transaction.rows(
        f"SELECT c.id, c.block, c.start, c.length, c.updated, b.text, {columns} FROM document_chunks c "
        "JOIN document_blocks b ON b.key = c.block JOIN documents d ON d.key = c.document WHERE c.id = ANY($1)",
        list(ids),
    ):
        if row[0] not in documents:
            document = _row(row)
            documents[row[0]] = document, document.starts()
        if block not in blocks:
            blocks[block] = _read(content)
        document, starts = documents[row[0]]
        whole, (at, unit) = blocks[block], starts[block]
        end = start + length
        found[chunk] = Found(chunk, document, whole[start:end], at + start, at + end, updated, whole[:start], unit)
    return found


def existing(transaction: Transaction, ids: Sequence[str]) -> set[str]:
    """Which of these are ids of chunks."""
    return {one for (one,) in transaction.rows("SELECT id FROM document_chunks WHERE id = ANY($1)", list(ids))}


def create(transaction: Transaction, project: str, document: str) -> Row:
    """A new, empty document."""
    made = transaction.rows(
        "INSERT INTO documents(project, id, token, revision, following, characters, chunks, layout, updated) "
        f"VALUES ($1, $2, $3, 0, 0, 0, 0, '[]', $4) RETURNING {COLUMNS}",
        project,
        document,
        secrets.token_hex(TOKEN // 2),
        transaction.now(),
    )
    return _row(made[0])


def write(transaction: Transaction, row: Row, change: Rewrite, *, chunks: int, following: int) -> Row:
    """Replace the blocks between those that stay; returns the row as it is now."""
    stop = len(row.blocks) - change.back
    gone = [block.key for block in row.blocks[change.front : stop]]
    if gone:
        transaction.rows("DELETE FROM document_blocks WHERE key = ANY($1)", gone)
        transaction.rows("DELETE FROM document_chunks WHERE document = $1 AND block = ANY($2)", row.key, gone)
    written = [_write_block(transaction, row, block) for block in change.between]
    blocks = (*row.blocks[: change.front], *written, *row.blocks[stop:])
    now = replace(
        row,
        revision=row.revision + 1,
        following=following,
        characters=sum(block.length for block in blocks),
        chunks=chunks,
        blocks=blocks,
        updated=transaction.now(),
    )
    layout = json.dumps([[block.key, block.length, block.wide] for block in blocks], separators=(",", ":"))
    transaction.rows(
        "UPDATE documents SET revision = $2, following = $3, characters = $4, chunks = $5, layout = $6, updated = $7 "
        "WHERE key = $1",
        row.key,
        now.revision,
        following,
        now.characters,
        chunks,
        layout,
        now.updated,
    )
    return now


def place(transaction: Transaction, row: Row, project: str, document: str) -> Row:
    """Give a document another name or project; returns the row as it is now."""
    now = replace(row, project=project, id=document, revision=row.revision + 1)
    transaction.rows(
        "UPDATE documents SET project = $2, id = $3, revision = $4 WHERE key = $1",
        row.key,
        project,
        document,
        now.revision,
    )
    return now


def remove(transaction: Transaction, row: Row) -> list[str]:
    """Delete a document; returns the ids that its chunks had."""
    gone = transaction.rows("DELETE FROM document_chunks WHERE document = $1 RETURNING id", row.key)
    transaction.rows("DELETE FROM document_blocks WHERE document = $1", row.key)
    transaction.rows("DELETE FROM documents WHERE key = $1", row.key)
    return [chunk for (chunk,) in gone]


def _write_block(transaction: Transaction, row: Row, block: NewBlock) -> Block:
    [(key,)] = transaction.rows(
        "INSERT INTO document_blocks(document, text) VALUES ($1, $2) RETURNING key",
        row.key,
        block.text.encode("utf-8", "surrogatepass"),
    )
    transaction.each(
        "INSERT INTO document_chunks(id, document, block, start, length, digest, updated) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7)",
        (
            (row.chunk_id(one.number), row.key, key, one.start, one.end - one.start, one.digest, one.updated)
            for one in block.chunks.placed()
        ),
    )
    return Block(key, len(block.text), block.wide)


def _row(row: Sequence[Any]) -> Row:
    key, project, name, token, revision, following, characters, chunks, layout, updated = row
    blocks = tuple(Block(*block) for block in json.loads(layout))
    return Row(key, project, name, token, revision, following, characters, chunks, blocks, updated)


def _read(held: bytes) -> str:
    return bytes(held).decode("utf-8", "surrogatepass")
