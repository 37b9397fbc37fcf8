"""What is written, whether the index agrees with it, and what waits for its vector or was given up on the way there."""

from __future__ import annotations

from collections.abc import Iterator

from homing.config import Settings
from homing.doctor.finding import Finding
from homing.documents.checking import disagreements
from homing.documents.overview import Overview, overview
from homing.documents.owners import everybody
from homing.documents.records import Namespace
from homing.stores.registry import open_store
from homing.stores.store import Store

MEND = "homing docs reindex"
TOLD = 3
"""Disagreements that are told one by one."""


def written(settings: Settings) -> list[Finding]:
    """Findings about the documents of a data folder; changes nothing, and makes no tables."""
    found: Overview | None = None
    wrong: list[str] = []
    if settings.store or (settings.data / "homing.db").exists():
        store = open_store(settings.store_url)
        try:
            found = None if store.database is None else overview(store.database)
            if found is not None and store.database is not None:
                wrong = [one for view, own in everybody(store) for one in _wrong(view, own)]
        finally:
            store.close()
    if wrong:
        more = f"; and {len(wrong) - TOLD} more" if len(wrong) > TOLD else ""
        zh = f"{len(wrong)} 处文档与索引不一致"
        return [Finding("documents", "fail", "; ".join(wrong[:TOLD]) + more, MEND, zh)]
    if found is None or not found.documents:
        none = f"no documents in {settings.data} yet"
        return [Finding("documents", "skip", none, detail_zh=f"{settings.data} 里还没有文档")]
    return [_backlog(found)]


def _wrong(store: Store, own: Namespace) -> Iterator[str]:
    assert store.database is not None
    return disagreements(store.database, store, own)


def _backlog(found: Overview) -> Finding:
    backlog = found.backlog
    told = f"{found.documents} documents in {found.projects} projects, {found.chunks} paragraphs"
    zh = f"{found.projects} 个项目，{found.documents} 篇文档，{found.chunks} 段"
    if backlog.dead:
        given_up = f"{told}; {backlog.dead} were given up: {backlog.error}"
        return Finding("documents", "warn", given_up, MEND, f"{zh}；{backlog.dead} 段已放弃：{backlog.error}")
    if backlog.failing:
        failed = f"{told}; {backlog.waiting} wait, the model failed: {backlog.error}"
        return Finding("documents", "warn", failed, MEND, f"{zh}；{backlog.waiting} 段在等，模型出错：{backlog.error}")
    if backlog.waiting:
        waits = f"{told}; {backlog.waiting} wait for their vector"
        return Finding("documents", "ok", waits, detail_zh=f"{zh}；{backlog.waiting} 段在等向量")
    return Finding("documents", "ok", told, detail_zh=zh)
