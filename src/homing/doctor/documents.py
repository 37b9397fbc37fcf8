"""What is written, whether its paragraphs have their vectors, and what was given up on the way there."""

from __future__ import annotations

from homing.config import Settings
from homing.database.sqlite import SqliteDatabase
from homing.doctor.finding import Finding
from homing.documents.archive import Backlog, look

MEND = "homing docs reindex"


def written(settings: Settings) -> list[Finding]:
    """Findings about the documents of a data folder; changes nothing, and makes no tables."""
    path = settings.data / "homing.db"
    backlog: Backlog | None = None
    if path.exists():
        database = SqliteDatabase(path)
        try:
            backlog = look(database)
        finally:
            database.close()
    if backlog is None or not backlog.documents:
        none = f"no documents in {settings.data} yet"
        return [Finding("documents", "skip", none, detail_zh=f"{settings.data} 里还没有文档")]
    told = f"{backlog.documents} documents in {backlog.projects} projects, {backlog.chunks} paragraphs"
    zh = f"{backlog.projects} 个项目，{backlog.documents} 篇文档，{backlog.chunks} 段"
    if backlog.dead:
        given_up = f"{told}; {backlog.dead} were given up: {backlog.error}"
        return [Finding("documents", "warn", given_up, MEND, f"{zh}；{backlog.dead} 段已放弃：{backlog.error}")]
    if backlog.failing:
        failed = f"{told}; {backlog.waiting} wait, the model failed: {backlog.error}"
        return [
            Finding("documents", "warn", failed, MEND, f"{zh}；{backlog.waiting} 段在等，模型出错：{backlog.error}")
        ]
    if backlog.waiting:
        waits = f"{told}; {backlog.waiting} wait for their vector"
        return [Finding("documents", "ok", waits, detail_zh=f"{zh}；{backlog.waiting} 段在等向量")]
    return [Finding("documents", "ok", told, detail_zh=zh)]
