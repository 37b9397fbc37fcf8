"""What is written, whether its paragraphs have their vectors, and what was given up on the way there."""

from __future__ import annotations

from homing.config import Settings
from homing.database import Database
from homing.doctor.finding import Finding
from homing.documents.archive import Backlog, look

MEND = "homing docs reindex"


def written(settings: Settings) -> list[Finding]:
    """Findings about the documents of a data folder; changes nothing, and makes no tables."""
    path = settings.data / "homing.db"
    backlog: Backlog | None = None
    if path.exists():
        database = Database(path)
        try:
            backlog = look(database)
        finally:
            database.close()
    if backlog is None or not backlog.documents:
        return [Finding("documents", "skip", f"no documents in {settings.data} yet")]
    told = f"{backlog.documents} documents in {backlog.projects} projects, {backlog.chunks} paragraphs"
    if backlog.dead:
        return [Finding("documents", "warn", f"{told}; {backlog.dead} were given up: {backlog.error}", MEND)]
    if backlog.failing:
        return [
            Finding("documents", "warn", f"{told}; {backlog.waiting} wait, the model failed: {backlog.error}", MEND)
        ]
    if backlog.waiting:
        return [Finding("documents", "ok", f"{told}; {backlog.waiting} wait for their vector")]
    return [Finding("documents", "ok", told)]
