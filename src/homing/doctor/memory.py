"""What is remembered, whether it has its vectors, and what waits or was given up on the way there."""

from __future__ import annotations

from collections.abc import Iterator

from homing.buffer.outbox import Backlog, Outbox
from homing.config import Settings
from homing.database.sqlite import SqliteDatabase
from homing.doctor.finding import Finding
from homing.rag.content import counts
from homing.stores.registry import open_store

LATE_SECONDS = 300


def remembered(settings: Settings) -> list[Finding]:
    """Findings about the memory of a data folder; changes nothing, and makes no tables."""
    path = settings.data / "homing.db"
    entries: dict[str, int] = {}
    if path.exists():
        database = SqliteDatabase(path)
        try:
            entries = counts(database)
            queue = list(_queue(Outbox.look(database)))
        finally:
            database.close()
    if not entries:
        none = f"nothing is remembered in {settings.data} yet"
        return [Finding("memory", "skip", none, detail_zh=f"{settings.data} 里还没有记忆")]
    return [*_vectors(settings, entries), *queue]


def _vectors(settings: Settings, entries: dict[str, int]) -> Iterator[Finding]:
    store = open_store(settings.store_url)
    try:
        infos = {info.name: info for info in store.collections()}
    finally:
        store.close()
    off = not settings.embedding.provider_id and not settings.embedding.provider
    for name, count in entries.items():
        info = infos.get(name)
        indexed = 0 if info is None else info.records if off else info.embedded
        told = f"{count} entries, {indexed} {'found by keywords' if off else 'with a vector'}"
        zh = f"共 {count} 条，{indexed} 条{'可用关键词找到' if off else '有向量'}"
        if indexed < count:
            yield Finding(f"memory {name}", "warn", told, "homing rag backfill", zh)
        else:
            yield Finding(f"memory {name}", "ok", told, detail_zh=zh)


def _queue(backlog: Backlog | None) -> Iterator[Finding]:
    if backlog is None or not (backlog.waiting or backlog.dead):
        yield Finding("memory queue", "ok", "nothing waits", detail_zh="没有在等的")
    if backlog is None:
        return
    if backlog.waiting:
        late = backlog.failing or backlog.oldest > LATE_SECONDS
        told = f"{backlog.waiting} wait, {backlog.failing} of them failed before, the oldest for {backlog.oldest:.0f} s"
        zh = f"{backlog.waiting} 条在等，其中 {backlog.failing} 条失败过，最久的等了 {backlog.oldest:.0f} 秒"
        yield Finding("memory queue", "warn" if late else "ok", told, "homing rag backfill" if late else "", zh)
    if backlog.dead:
        given_up, zh = f"{backlog.dead} texts were given up", f"已放弃 {backlog.dead} 条"
        yield Finding("memory queue", "warn", given_up, "homing rag queue --retry", zh)
