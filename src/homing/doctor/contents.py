"""What is kept in a data folder, and whether it is in order."""

from __future__ import annotations

from collections.abc import Iterator

from homing.config import Settings
from homing.database.lazy import postgres_options
from homing.doctor.finding import Finding, failed, fine, opened, quoted, wrong
from homing.doctor.server import psql
from homing.documents.records import COLLECTION as DOCUMENTS
from homing.documents.records import everybody
from homing.documents.reindexing import disagreements, overview
from homing.errors import HomingError
from homing.memory.content import COLLECTIONS as MEMORIES
from homing.resolve import resolve_embedder
from homing.stores.store import Store, TellsSizes

LOST = ("is damaged", "the text that was written")
"""How sentences end about texts themselves, which cannot be made anew."""
SIZES_ZH = {
    "texts": "文本",
    "vectors": "向量",
    "codes": "向量编码",
    "keywords": "关键词",
    "filters": "筛选条件",
    "other": "其他",
}
SHOWN = 3
"""Disagreements that are named one by one."""


def stored(settings: Settings) -> list[Finding]:
    """Findings about the store: each collection, and how large everything is."""
    with opened(settings) as store:
        if store is None:
            nothing = f"nothing in {settings.data} yet"
            return [Finding("data", "skip", nothing, detail_zh=f"{settings.data} 里还没有内容")]
        try:
            embedder = resolve_embedder(settings)
            model = "" if embedder is None else embedder.id
        except HomingError:
            # Which is a finding of its own.
            model = ""
        return [*_collections(store, model), *_sizes(store)]


def compared(settings: Settings) -> list[Finding]:
    """Findings about whether texts, words and vectors agree; reads all of them."""
    with opened(settings) as store:
        return [] if store is None else list(_integrity(settings, store))


def _collections(store: Store, model: str) -> Iterator[Finding]:
    for info in store.collections():
        name = f"collection {info.name}"
        waiting = info.records - info.embedded
        message = f"records: {info.records}, with a vector: {info.embedded}" + (
            f" ({info.model})" if info.model else ""
        )
        zh = f"共 {info.records} 条，{info.embedded} 条有向量" + (f"（{info.model}）" if info.model else "")
        if model and info.model and info.model != model:
            now, zh = f"{message}, but the model is now {model}", f"{zh}，但现在的模型是 {model}"
            yield wrong("model changed", name, "warn", now, "homing models default", zh)
        elif model and waiting and (info.model or info.name in MEMORIES):
            message, zh = f"{message}, waiting for one: {waiting}", f"{zh}；{waiting} 条在等向量"
            if info.name in MEMORIES:
                yield wrong("memory unembedded", name, "warn", message, "homing memory reindex", zh)
            elif info.name == DOCUMENTS:
                yield wrong("documents unembedded", name, "warn", message, "homing documents reindex", zh)
            else:
                yield wrong("texts unembedded", name, "warn", message, "homing repair", zh)
        else:
            yield fine(name, message, zh)


def _sizes(store: Store) -> Iterator[Finding]:
    if isinstance(store, TellsSizes):
        sizes = {part: f"{size / 1024**2:.1f} MB" for part, size in store.sizes().items() if size}
        message = ", ".join(f"{part} {size}" for part, size in sizes.items())
        zh = "，".join(f"{SIZES_ZH.get(part, part)} {size}" for part, size in sizes.items())
        yield fine("index sizes", message or "empty", zh or "空的")


def _integrity(settings: Settings, store: Store) -> Iterator[Finding]:
    problems = store.check()
    for problem in problems:
        if "keyword index" not in problem and any(one in problem for one in LOST):
            yield lost(settings, "database", problem)
        else:
            yield failed("index damaged", "database", problem, "homing repair")
    if not problems:
        yield fine("database", "records, vectors and keywords agree", "记录、向量和关键词一致")


def lost(settings: Settings, check: str, detail: str) -> Finding:
    """A finding of something that no command makes anew: a backup has it."""
    if not isinstance(settings.database, str):
        folder = quoted(settings.data.absolute())
        mend = f"mv {folder} {folder}.damaged && homing restore BACKUP --data {folder}"
        return failed("text damaged", check, detail, mend)
    schema = postgres_options(settings.database)[1].get("schema", "homing")
    mend = f"{psql(settings.database)} -c 'ALTER SCHEMA {schema} RENAME TO {schema}_damaged' && homing restore BACKUP"
    return failed("schema damaged", check, detail, mend)


def written(settings: Settings) -> list[Finding]:
    """Findings about the documents of a data folder; changes nothing, and makes no tables."""
    with opened(settings) as store:
        found = None if store is None or store.database is None else overview(store.database)
        owners = [] if store is None or found is None else [*everybody(store)]
        different = [one for held, own in owners if held.database for one in disagreements(held.database, held, own)]
    if different:
        more = f"; and {len(different) - SHOWN} more" if len(different) > SHOWN else ""
        detail, zh = "; ".join(different[:SHOWN]) + more, f"{len(different)} 处文档与索引不一致"
        return [failed("documents disagree", "documents", detail, "homing documents reindex", zh)]
    if found is None or not found.documents:
        none = f"no documents in {settings.data} yet"
        return [Finding("documents", "skip", none, detail_zh=f"{settings.data} 里还没有文档")]
    message = f"{found.documents} documents in {found.projects} projects, {found.chunks} paragraphs"
    return [fine("documents", message, f"{found.projects} 个项目，{found.documents} 篇文档，{found.chunks} 段")]
