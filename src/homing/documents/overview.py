"""How much there is, and what of it waits."""

from __future__ import annotations

from dataclasses import dataclass

from homing.database import Database
from homing.documents import archive
from homing.documents.records import COLLECTION
from homing.engine.work import Work
from homing.engine.work_state import Backlog


@dataclass(frozen=True, slots=True)
class Overview:
    """The documents of a database, and how things stand with their vectors."""

    projects: int
    documents: int
    chunks: int
    backlog: Backlog


def overview(database: Database) -> Overview | None:
    """How things stand; None where there never were any documents. Makes no tables."""
    if not database.applied(archive.COMPONENT):
        return None
    [(projects, documents, chunks)] = database.read(
        lambda transaction: transaction.rows(
            "SELECT count(DISTINCT project), count(*), coalesce(sum(chunks), 0) FROM documents"
        )
    )
    return Overview(projects, documents, int(chunks), Work(database).backlog(COLLECTION))
