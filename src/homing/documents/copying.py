"""Takes the documents of an owner from one database to another, one after the other."""

from __future__ import annotations

from functools import partial

from homing.database import Database, Transaction
from homing.documents import archive
from homing.documents.archive import Row
from homing.documents.layout import Stored, rewrite


def copy_documents(source: Database, target: Database, owner: str) -> int:
    """Bring over every document that is not there yet; returns how many the source has. Chunks keep their ids."""
    if not source.applied(archive.COMPONENT):
        return 0
    target.migrate(archive.COMPONENT, archive.STEPS)
    rows = source.read(partial(archive.rows, owner=owner))
    for row in rows:
        stored = source.read(partial(archive.stored, row=row))
        target.write(partial(_put, row=row, stored=stored))
    settings = source.read(
        lambda transaction: transaction.rows(
            "SELECT user_id, name, value FROM document_settings WHERE user_id = $1", owner
        )
    )
    target.write(
        lambda transaction: transaction.each(
            "INSERT INTO document_settings(user_id, name, value) VALUES ($1, $2, $3) "
            "ON CONFLICT(user_id, name) DO NOTHING",
            settings,
        )
    )
    return len(rows)


def _put(transaction: Transaction, row: Row, stored: Stored) -> None:
    known = archive.find(transaction, row.owner, row.project, row.id)
    if known is not None and known.token == row.token:
        return
    made = archive.create(transaction, row.owner, row.project, row.id, token=row.token)
    blocks = rewrite(Stored(), stored.text, 0, len(stored.text), stored.placed(), first=0, last=0)
    archive.write(
        transaction,
        made,
        blocks,
        chunks=row.chunks,
        following=row.following,
        cut=row.cut,
        about=row.about,
        updated=row.updated,
    )
