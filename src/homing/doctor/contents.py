"""What is kept in a data folder, whether it is in order, and what waits for its vector or was given up."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from homing.config import Settings
from homing.doctor.finding import Finding, opened
from homing.documents.records import COLLECTION as DOCUMENTS
from homing.documents.records import Namespace, everybody
from homing.documents.reindexing import Overview, disagreements, overview
from homing.embedders.provider import EmbeddingProvider
from homing.engine.work import Work
from homing.engine.work_state import Backlog
from homing.memory.content import COLLECTIONS as MEMORIES
from homing.resolve import resolve_embedder
from homing.stores.store import CollectionInfo, Store, TellsSizes

REINDEX_DOCUMENTS = "homing documents reindex"
REINDEX_MEMORY = "homing memory reindex"
REPAIR = "homing repair"
SHOWN = 3
"""Disagreements that are named one by one."""
LATE_SECONDS = 300


def stored(settings: Settings) -> list[Finding]:
    """Findings about the store: each collection, how large it is, and whether texts, words and vectors agree."""
    with opened(settings) as store:
        if store is None:
            nothing = f"nothing in {settings.data} yet"
            return [Finding("data", "skip", nothing, detail_zh=f"{settings.data} 里还没有内容")]
        return [*_collections(store, resolve_embedder(settings)), *_sizes(store), *_integrity(store)]


def _collections(store: Store, embedder: EmbeddingProvider | None) -> Iterator[Finding]:
    for info in store.collections():
        name = f"collection {info.name}"
        waiting = info.records - info.embedded
        message = f"{info.records} records, {info.embedded} embedded by {info.model or 'nothing'}"
        zh = f"共 {info.records} 条，{info.embedded} 条有向量" + (f"（{info.model}）" if info.model else "")
        if embedder is not None and info.model and info.model != embedder.id:
            now = f"{message}, but the model is now {embedder.id}"
            yield Finding(name, "warn", now, "homing models default", f"{zh}，但现在的模型是 {embedder.id}")
        elif embedder is not None and info.model and waiting:
            mend = REINDEX_MEMORY if info.name in MEMORIES else "add them again, or search the folder"
            mend = REINDEX_DOCUMENTS if info.name == DOCUMENTS else mend
            _, of_user, user = info.name.partition(f"{DOCUMENTS}:")
            mend = f"homing knowledge embed --user {shlex.quote(user)}" if of_user else mend
            yield Finding(name, "warn", f"{message}; {waiting} wait for a vector", mend, f"{zh}；{waiting} 条在等向量")
        else:
            yield Finding(name, "ok", message, detail_zh=zh)


def _sizes(store: Store) -> Iterator[Finding]:
    if isinstance(store, TellsSizes):
        message = ", ".join(f"{part} {size / 1024**2:.1f} MB" for part, size in store.sizes().items() if size)
        yield Finding("index sizes", "ok", message or "empty")


def _integrity(store: Store) -> Iterator[Finding]:
    problems = store.check()
    for problem in problems:
        yield Finding("database", "fail", problem, REPAIR)
    if not problems:
        yield Finding("database", "ok", "records, vectors and keywords agree", detail_zh="记录、向量和关键词一致")


def written(settings: Settings) -> list[Finding]:
    """Findings about the documents of a data folder; changes nothing, and makes no tables."""
    with opened(settings) as store:
        found = None if store is None or store.database is None else overview(store.database)
        wrong = [] if store is None or found is None else [one for whose in everybody(store) for one in _wrong(*whose)]
    if wrong:
        more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        zh = f"{len(wrong)} 处文档与索引不一致"
        return [Finding("documents", "fail", "; ".join(wrong[:SHOWN]) + more, REINDEX_DOCUMENTS, zh)]
    if found is None or not found.documents:
        none = f"no documents in {settings.data} yet"
        return [Finding("documents", "skip", none, detail_zh=f"{settings.data} 里还没有文档")]
    return [_backlog(found)]


def _wrong(store: Store, own: Namespace) -> Iterator[str]:
    assert store.database is not None
    return disagreements(store.database, store, own)


def _backlog(found: Overview) -> Finding:
    backlog = found.backlog
    message = f"{found.documents} documents in {found.projects} projects, {found.chunks} paragraphs"
    zh = f"{found.projects} 个项目，{found.documents} 篇文档，{found.chunks} 段"
    if backlog.dead:
        given_up = f"{message}; {backlog.dead} were given up: {backlog.error}"
        return Finding(
            "documents", "warn", given_up, REINDEX_DOCUMENTS, f"{zh}；{backlog.dead} 段已放弃：{backlog.error}"
        )
    if backlog.failing:
        failed = f"{message}; {backlog.waiting} wait, the model failed: {backlog.error}"
        return Finding(
            "documents", "warn", failed, REINDEX_DOCUMENTS, f"{zh}；{backlog.waiting} 段在等，模型出错：{backlog.error}"
        )
    if backlog.waiting:
        waits = f"{message}; {backlog.waiting} wait for their vector"
        return Finding("documents", "ok", waits, detail_zh=f"{zh}；{backlog.waiting} 段在等向量")
    return Finding("documents", "ok", message, detail_zh=zh)


def remembered(settings: Settings) -> list[Finding]:
    """Findings about the memory of a data folder; embeds nothing."""
    backlog = Backlog()
    with opened(settings) as store:
        infos = [] if store is None else [info for info in store.collections() if info.name in MEMORIES]
        # What has its vector neither waits nor was given up.
        if store is not None and store.database is not None and any(info.embedded < info.records for info in infos):
            backlog = Work(store.database).backlog()
    if not infos:
        none = f"nothing is remembered in {settings.data} yet"
        return [Finding("memory", "skip", none, detail_zh=f"{settings.data} 里还没有记忆")]
    off = not settings.embedding.provider_id and not settings.embedding.provider
    return [*_vectors(infos, off=off), *_queue(backlog)]


def _vectors(infos: Sequence[CollectionInfo], *, off: bool) -> Iterator[Finding]:
    for info in sorted(infos, key=lambda one: MEMORIES.index(one.name)):
        indexed = info.records if off else info.embedded
        detail = f"{info.records} entries, {indexed} {'found by keywords' if off else 'with a vector'}"
        zh = f"共 {info.records} 条，{indexed} 条{'可用关键词找到' if off else '有向量'}"
        if indexed < info.records:
            yield Finding(f"memory {info.name}", "warn", detail, REINDEX_MEMORY, zh)
        else:
            yield Finding(f"memory {info.name}", "ok", detail, detail_zh=zh)


def _queue(backlog: Backlog) -> Iterator[Finding]:
    if not (backlog.waiting or backlog.dead):
        yield Finding("memory queue", "ok", "nothing waits", detail_zh="没有在等的")
    if backlog.waiting:
        late = backlog.failing or backlog.oldest > LATE_SECONDS
        detail = (
            f"{backlog.waiting} wait, {backlog.failing} of them failed before, the oldest for {backlog.oldest:.0f} s"
        )
        zh = f"{backlog.waiting} 条在等，其中 {backlog.failing} 条失败过，最久的等了 {backlog.oldest:.0f} 秒"
        yield Finding("memory queue", "warn" if late else "ok", detail, REINDEX_MEMORY if late else "", zh)
    if backlog.dead:
        given_up, zh = f"{backlog.dead} texts were given up", f"已放弃 {backlog.dead} 条"
        yield Finding("memory queue", "warn", given_up, "homing memory queue --retry", zh)
