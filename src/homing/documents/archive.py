"""Documents as rows: their texts, and which chunk stands where."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from homing.database import Database, Transaction
from homing.documents.layout import (
    PARAGRAPHS,
    Block,
    BlockChunks,
    NewBlock,
    Placed,
    Rewrite,
    Stored,
    digest_of,
    rewrite,
)

COMPONENT = "documents"

# `layout` lists the blocks in order: [[key, length, wide], …]. A chunk's id is the token of its document and its number
# there, neither of which is ever used again. Texts are UTF-8 that may hold NUL and halves of surrogate pairs; that of a
# block may go on behind its length, as far as its last chunk reaches. `user_id` is whose they are, empty for the
# folder's own; every key and every statement names it. `about` is JSON about the file that a document was read from.
STEPS = (
    """
    CREATE TABLE documents(
        key IDENTITY, user_id TEXT NOT NULL, project TEXT NOT NULL, id TEXT NOT NULL, token TEXT NOT NULL UNIQUE,
        revision INT64 NOT NULL, following INT64 NOT NULL, characters INT64 NOT NULL, chunks INT64 NOT NULL,
        layout TEXT NOT NULL, updated FLOAT64 NOT NULL, cut TEXT NOT NULL, about TEXT NOT NULL,
        UNIQUE(user_id, project, id));
    CREATE TABLE document_blocks(
        key IDENTITY, user_id TEXT NOT NULL, document INT64 NOT NULL, text BYTES NOT NULL);
    CREATE INDEX document_blocks_by_document ON document_blocks(user_id, document);
    CREATE TABLE document_chunks(
        user_id TEXT NOT NULL, id TEXT NOT NULL, document INT64 NOT NULL, block INT64 NOT NULL, start INT64 NOT NULL,
        length INT64 NOT NULL, digest BYTES NOT NULL, updated FLOAT64 NOT NULL, PRIMARY KEY(user_id, id));
    CREATE INDEX document_chunks_by_block ON document_chunks(user_id, document, block);
    CREATE TABLE document_settings(
        user_id TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY(user_id, name));
    """,
)
TABLES = ("documents", "document_blocks", "document_chunks", "document_settings")
TOKEN = 12
"""Characters of a document's token."""
COLUMNS = "key, user_id, project, id, token, revision, following, characters, chunks, layout, updated, cut, about"


@dataclass(frozen=True, slots=True)
class Row:
    """A document as its row says."""

    key: int
    owner: str
    project: str
    id: str
    token: str
    revision: int
    following: int
    characters: int
    chunks: int
    blocks: tuple[Block, ...]
    updated: float
    cut: str
    about: str

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
class FoundChunk:
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


def find(transaction: Transaction, owner: str, project: str, document: str) -> Row | None:
    """The row of a document, if there is one."""
    found = transaction.rows(
        f"SELECT {COLUMNS} FROM documents WHERE user_id = $1 AND project = $2 AND id = $3", owner, project, document
    )
    return _row(found[0]) if found else None


def rows(transaction: Transaction, owner: str, project: str | None = None) -> list[Row]:
    """Every document of an owner, or those of a project, by name."""
    if project is None:
        found = transaction.rows(f"SELECT {COLUMNS} FROM documents WHERE user_id = $1 ORDER BY project, id", owner)
    else:
        found = transaction.rows(
            f"SELECT {COLUMNS} FROM documents WHERE user_id = $1 AND project = $2 ORDER BY id", owner, project
        )
    return [_row(row) for row in found]


def owners(transaction: Transaction) -> list[str]:
    """Who has documents here, as far as whoever asks may know."""
    return [owner for (owner,) in transaction.rows("SELECT DISTINCT user_id FROM documents ORDER BY user_id")]


def text(transaction: Transaction, row: Row) -> str:
    """The whole text of a document."""
    held: dict[int, bytes] = dict(
        transaction.rows(
            "SELECT key, text FROM document_blocks WHERE user_id = $1 AND document = $2", row.owner, row.key
        )
    )
    return "".join(_read(held[block.key])[: block.length] for block in row.blocks)


def stored(transaction: Transaction, row: Row) -> Stored:
    """A document with its text and all of its chunks."""
    held: dict[int, list[Placed]] = {block.key: [] for block in row.blocks}
    for chunk, block, start, length, digest, updated in transaction.rows(
        "SELECT id, block, start, length, digest, updated FROM document_chunks WHERE user_id = $1 AND document = $2",
        row.owner,
        row.key,
    ):
        held[block].append(Placed(int(chunk[TOKEN + 1 :]), start, start + length, bytes(digest), updated))
    chunks = tuple(BlockChunks.of(sorted(held[block.key], key=lambda one: one.start)) for block in row.blocks)
    return Stored(text(transaction, row), row.blocks, chunks)


def look_up(
    transaction: Transaction, owner: str, known: Mapping[str, str], *, units: bool = False
) -> dict[str, FoundChunk]:
    """The chunks that exist, by id, with their texts and places; `known` is what an index holds as their texts.

    Blocks are read for what says something else by now, and, with `units`, to count in UTF-16.
    """
    if not known:
        return {}
    chunks = transaction.rows(
        "SELECT id, document, block, start, length, digest, updated FROM document_chunks "
        "WHERE user_id = $1 AND id = ANY($2)",
        owner,
        list(known),
    )
    held = transaction.rows(
        f"SELECT {COLUMNS} FROM documents WHERE user_id = $1 AND key = ANY($2)", owner, list({one[1] for one in chunks})
    )
    documents = {row.key: (row, row.starts()) for row in map(_row, held)}
    said = {name: units or not _says(known[name], length, digest) for name, _, _, _, length, digest, _ in chunks}
    blocks = _texts(transaction, owner, {block for name, _, block, *_ in chunks if said[name]})
    found: dict[str, FoundChunk] = {}
    for name, document, block, start, length, _, updated in chunks:
        row, starts = documents[document]
        at, unit = starts[block]
        whole, end = blocks.get(block, ""), start + length
        text = whole[start:end] if said[name] else known[name]
        found[name] = FoundChunk(name, row, text, at + start, at + end, updated, whole[:start], unit)
    return found


def _says(text: str, length: int, digest: bytes) -> bool:
    """Whether an indexed text is that of a chunk, character by character."""
    return len(text) == length and "\ufffd" not in text and digest_of(text) == bytes(digest)


def _texts(transaction: Transaction, owner: str, blocks: Collection[int]) -> dict[int, str]:
    if not blocks:
        return {}
    sql = "SELECT key, text FROM document_blocks WHERE user_id = $1 AND key = ANY($2)"
    return {key: _read(content) for key, content in transaction.rows(sql, owner, list(blocks))}


def existing(transaction: Transaction, owner: str, ids: Sequence[str]) -> set[str]:
    """Which of these are ids of chunks."""
    found = transaction.rows("SELECT id FROM document_chunks WHERE user_id = $1 AND id = ANY($2)", owner, list(ids))
    return {one for (one,) in found}


def create(transaction: Transaction, owner: str, project: str, document: str, *, token: str = "") -> Row:
    """A new, empty document; a copy of one that is elsewhere keeps its token."""
    values = (owner, project, document, token or secrets.token_hex(TOKEN // 2), transaction.now(), PARAGRAPHS)
    made = transaction.rows(
        "INSERT INTO documents(user_id, project, id, token, revision, following, characters, chunks, layout, updated, "
        f"cut, about) VALUES ($1, $2, $3, $4, 0, 0, 0, 0, '[]', $5, $6, '{{}}') RETURNING {COLUMNS}",
        *values,
    )
    return _row(made[0])


def write(transaction: Transaction, row: Row, change: Rewrite, *, updated: float | None = None) -> Row:
    """Keep what the row says of its chunks, its cut and its file, and replace the blocks between those that stay.

    Returns the row as it is now.
    """
    stop = len(row.blocks) - change.back
    gone = [block.key for block in row.blocks[change.front : stop]]
    if gone:
        transaction.rows("DELETE FROM document_blocks WHERE user_id = $1 AND key = ANY($2)", row.owner, gone)
        of_blocks = "DELETE FROM document_chunks WHERE user_id = $1 AND document = $2 AND block = ANY($3)"
        transaction.rows(of_blocks, row.owner, row.key, gone)
    written = [_write_block(transaction, row, block) for block in change.between]
    blocks = (*row.blocks[: change.front], *written, *row.blocks[stop:])
    now = replace(
        row,
        revision=row.revision + 1,
        characters=sum(block.length for block in blocks),
        blocks=blocks,
        updated=transaction.now() if updated is None else updated,
    )
    layout = json.dumps([[block.key, block.length, block.wide] for block in blocks], separators=(",", ":"))
    sizes = (now.revision, now.following, now.characters, now.chunks)
    transaction.rows(
        "UPDATE documents SET revision = $3, following = $4, characters = $5, chunks = $6, layout = $7, updated = $8, "
        "cut = $9, about = $10 WHERE user_id = $1 AND key = $2",
        *(row.owner, row.key, *sizes, layout, now.updated, now.cut, now.about),
    )
    return now


def place(transaction: Transaction, row: Row, project: str, document: str) -> Row:
    """Give a document another name or project; returns the row as it is now."""
    now = replace(row, project=project, id=document, revision=row.revision + 1)
    renamed = "UPDATE documents SET project = $3, id = $4, revision = $5 WHERE user_id = $1 AND key = $2"
    transaction.rows(renamed, row.owner, row.key, project, document, now.revision)
    return now


def remove(transaction: Transaction, row: Row) -> list[str]:
    """Delete a document; returns the ids that its chunks had."""
    gone = transaction.rows(
        "DELETE FROM document_chunks WHERE user_id = $1 AND document = $2 RETURNING id", row.owner, row.key
    )
    transaction.rows("DELETE FROM document_blocks WHERE user_id = $1 AND document = $2", row.owner, row.key)
    transaction.rows("DELETE FROM documents WHERE user_id = $1 AND key = $2", row.owner, row.key)
    return [chunk for (chunk,) in gone]


def _write_block(transaction: Transaction, row: Row, block: NewBlock) -> Block:
    [(key,)] = transaction.rows(
        "INSERT INTO document_blocks(user_id, document, text) VALUES ($1, $2, $3) RETURNING key",
        row.owner,
        row.key,
        block.text.encode("utf-8", "surrogatepass"),
    )
    transaction.each(
        "INSERT INTO document_chunks(user_id, id, document, block, start, length, digest, updated) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        (
            (row.owner, row.chunk_id(one.number), row.key, key, one.start, one.end - one.start, one.digest, one.updated)
            for one in block.chunks.placed()
        ),
    )
    return Block(key, block.length, block.wide)


def _row(row: Sequence[Any]) -> Row:
    key, owner, project, name, token, revision, following, characters, chunks, layout, updated, cut, about = row
    blocks = tuple(Block(*block) for block in json.loads(layout))
    return Row(key, owner, project, name, token, revision, following, characters, chunks, blocks, updated, cut, about)


def _read(held: bytes) -> str:
    return bytes(held).decode("utf-8", "surrogatepass")


def copy_documents(source: Database, target: Database, owner: str, to: str) -> int:
    """Bring over every document of an owner that is not there yet, and let it be another's; returns how many there are.

    Chunks keep their ids.
    """
    if not source.applied(COMPONENT):
        return 0
    target.migrate(COMPONENT, STEPS)
    documents = source.read(partial(rows, owner=owner))
    for row in documents:
        target.write(partial(_copy, row=replace(row, owner=to), held=source.read(partial(stored, row=row))))
    settings = source.read(
        lambda transaction: transaction.rows("SELECT name, value FROM document_settings WHERE user_id = $1", owner)
    )
    target.write(
        lambda transaction: transaction.each(
            "INSERT INTO document_settings(user_id, name, value) VALUES ($1, $2, $3) "
            "ON CONFLICT(user_id, name) DO NOTHING",
            [(to, *one) for one in settings],
        )
    )
    return len(documents)


def _copy(transaction: Transaction, row: Row, held: Stored) -> None:
    known = find(transaction, row.owner, row.project, row.id)
    if known is not None and known.token == row.token:
        return
    made = create(transaction, row.owner, row.project, row.id, token=row.token)
    blocks = rewrite(Stored(), held.text, 0, len(held.text), held.placed(), first=0, last=0)
    said = replace(made, chunks=row.chunks, following=row.following, cut=row.cut, about=row.about)
    write(transaction, said, blocks, updated=row.updated)
