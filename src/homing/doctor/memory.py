"""What is remembered, whether it has its vectors, and what waits or was given up on the way there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from homing.config import Settings
from homing.doctor.finding import Finding
from homing.engine.work import Work
from homing.engine.work_state import Backlog
from homing.memory.content import COLLECTIONS
from homing.stores.registry import open_store
from homing.stores.store import CollectionInfo

LATE_SECONDS = 300
REINDEX = "homing memory reindex"


def remembered(settings: Settings) -> list[Finding]:
    """Findings about the memory of a data folder; embeds nothing."""
    infos, backlog = list[CollectionInfo](), Backlog()
    if settings.store or (settings.data / "homing.db").exists():
        store = open_store(settings.store_url)
        try:
            infos = [info for info in store.collections() if info.name in COLLECTIONS]
            # What has its vector neither waits nor was given up.
            if store.database is not None and any(info.embedded < info.records for info in infos):
                backlog = Work(store.database).backlog()
        finally:
            store.close()
    if not infos:
        none = f"nothing is remembered in {settings.data} yet"
        return [Finding("memory", "skip", none, detail_zh=f"{settings.data} 里还没有记忆")]
    off = not settings.embedding.provider_id and not settings.embedding.provider
    return [*_vectors(infos, off=off), *_queue(backlog)]


def _vectors(infos: Sequence[CollectionInfo], *, off: bool) -> Iterator[Finding]:
    for info in sorted(infos, key=lambda one: COLLECTIONS.index(one.name)):
        indexed = info.records if off else info.embedded
        detail = f"{info.records} entries, {indexed} {'found by keywords' if off else 'with a vector'}"
        zh = f"共 {info.records} 条，{indexed} 条{'可用关键词找到' if off else '有向量'}"
        if indexed < info.records:
            yield Finding(f"memory {info.name}", "warn", detail, REINDEX, zh)
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
        yield Finding("memory queue", "warn" if late else "ok", detail, REINDEX if late else "", zh)
    if backlog.dead:
        given_up, zh = f"{backlog.dead} texts were given up", f"已放弃 {backlog.dead} 条"
        yield Finding("memory queue", "warn", given_up, "homing memory queue --retry", zh)
