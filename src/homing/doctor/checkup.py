"""Proves that the parts work instead of asking whether they are there.

Every check does the real thing once, on scratch data, and says in one line what it saw; what is not in order names the
command that mends it.
"""

from __future__ import annotations

import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, TypeAlias

from homing.config import Settings
from homing.doctor.contents import compared, lost, stored, written
from homing.doctor.embedding import answers, configured, remote_unasked, silent, unfit
from homing.doctor.finding import Finding, failed, fine, healthy, quoted
from homing.doctor.in_use import places, providers, working
from homing.doctor.server import psql, served
from homing.embedders.provider import EmbeddingProvider
from homing.engine.search import HybridOptions, search
from homing.errors import (
    EmbeddingError,
    HomingError,
    InvalidArgument,
    MissingExtra,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
    hide_passwords,
)
from homing.records import VectorRecord
from homing.resolve import resolve_embedder
from homing.stores.registry import open_store
from homing.stores.store import Store

PROBES = {
    "zh": ("量子纠缠是什么", "量子纠缠让两个粒子的状态彼此关联，无论相隔多远。"),
    "en": ("how do whales breathe", "Whales come to the surface to breathe air through a blowhole."),
}
"""Per language a question, and the text that answers it; each must be found among the others by both legs."""

Part = Literal["all", "quick", "data"]
Check: TypeAlias = tuple[str, Callable[[], list[Finding]]]

BACKUP = "restore a "
"""What an error says of which nothing can be made anew."""


def diagnose(settings: Settings, *, live: bool = False, part: Part = "all") -> list[Finding]:
    """Run every check, or a part of them. Never raises: what a check raises is its finding.

    A model behind an API is asked only when `live` is: it costs money, and the answer depends on the network. The part
    "data" reads every text and vector that is kept, which takes seconds where there are many; "quick" is all the rest.
    """
    checks = {"quick": _quick(settings, live), "data": _thorough(settings)}
    chosen = [found for name, found in checks.items() if part in ("all", name)]
    return [one for some in chosen for name, check in some for one in _tried(settings, name, check)]


def _tried(settings: Settings, name: str, check: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return check()
    except HomingError as error:
        return [_failed(settings, name, error)]
    except Exception as error:
        return [failed("bug", name, hide_passwords(f"{type(error).__name__}: {error}"), "report this as a bug")]


def _quick(settings: Settings, live: bool) -> Iterator[Check]:
    yield "versions", _versions
    # Before anything is opened: that alone closes what was open to others.
    seen = _tried(settings, "data", lambda: places(settings))
    yield "data", lambda: seen
    yield "providers", lambda: providers(settings)
    seen = _tried(settings, "embedding", lambda: configured(settings))
    yield "embedding", lambda: seen
    ask = False
    if healthy(seen):
        # Else the model cannot be had, for the reason that was just told.
        unasked = [] if live else _tried(settings, "model", lambda: remote_unasked(settings))
        yield "model", lambda: unasked
        ask = not unasked
    if ask:
        if live:
            yield "embedding", lambda: answers(settings)
        yield "model", lambda: _model(settings)
        yield "search", lambda: _search(settings)
    yield "server", lambda: served(settings)
    yield "data", lambda: stored(settings)
    yield "in use", lambda: working(settings, ask_model=ask)


def _thorough(settings: Settings) -> Iterator[Check]:
    yield "database", lambda: compared(settings)
    yield "documents", lambda: written(settings)


def _versions() -> list[Finding]:
    names = ("homing", "apsw", "sqlite-vec", "onnxruntime", "tokenizers", "numpy")
    versions = [f"Python {platform.python_version()}"]
    for name in names:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            message, zh = f"{name} is not installed", f"没有安装 {name}"
            return [failed("package missing", "versions", message, "pip install --force-reinstall homing", zh)]
    return [fine("versions", ", ".join(versions))]


def _model(settings: Settings) -> list[Finding]:
    embedder = resolve_embedder(settings)
    if embedder is None:
        return []
    started = time.perf_counter()
    # The last one nobody has embedded before: what is remembered of the others says nothing about the model.
    rows = embedder.embed([*(text for pair in PROBES.values() for text in pair), f"自检 {time.time_ns()}"])
    milliseconds = (time.perf_counter() - started) * 1000
    related, unrelated = float(rows[0] @ rows[1]), float(rows[0] @ rows[3])
    detail = f"{embedder.id}: related {related:.2f}, unrelated {unrelated:.2f}, first answer in {milliseconds:.0f} ms"
    zh = f"{embedder.id}：相关 {related:.2f}，无关 {unrelated:.2f}，首次回答用时 {milliseconds:.0f} 毫秒"
    return [fine("model", detail, zh) if related > unrelated else unfit(settings, "model", detail, zh)]


def _search(settings: Settings) -> list[Finding]:
    """Both legs find a Chinese and an English probe in a scratch database."""
    embedder = resolve_embedder(settings)
    with tempfile.TemporaryDirectory(prefix="homing-doctor-") as folder:
        store = open_store(f"sqlite:///{Path(folder) / 'probe.db'}")
        try:
            store.upsert(_probe_records(embedder))
            return [finding for language in PROBES for finding in _probe(language, store, embedder)]
        finally:
            store.close()


def _probe_records(embedder: EmbeddingProvider | None) -> list[VectorRecord]:
    texts = {language: text for language, (_, text) in PROBES.items()}
    if embedder is None:
        return [VectorRecord(language, "doctor", None, {}, text) for language, text in texts.items()]
    rows = embedder.embed(list(texts.values()))
    return [
        VectorRecord(language, "doctor", row, {}, text, embedder.id)
        for (language, text), row in zip(texts.items(), rows, strict=True)
    ]


def _probe(language: str, store: Store, embedder: EmbeddingProvider | None) -> Iterator[Finding]:
    for leg in ("keyword", "semantic") if embedder is not None else ("keyword",):
        options = HybridOptions(limit=1, mode="keyword" if leg == "keyword" else "semantic")
        found = search(PROBES[language][0], "doctor", store=store, embedder=embedder, options=options)
        name = f"search {language} {leg}"
        if found.degraded or [hit.id for hit in found] != [language]:
            reason = found.reason or "no hit"
            mend = "report this as a bug"
            yield failed("bug", name, f"the probe was not found ({reason})", mend, f"没有找到探针（{reason}）")
        else:
            took = f"{found.timings['total_ms']:.0f}"
            yield fine(name, f"written, searched and found in {took} ms", f"写入、搜索、找到，用时 {took} 毫秒")


def _failed(settings: Settings, check: str, error: HomingError) -> Finding:
    """The finding that a check ended with."""
    detail, folder = f"{error.code}: {error.message}", quoted(settings.data)
    extra, address = error.details.get("extra", "all"), hide_passwords(settings.store.partition("?")[0])
    match error:
        case MissingExtra():
            return failed("extra missing", check, detail, f"pip install 'homing[{extra}]'")
        case EmbeddingError():
            return silent(settings, check, error)
        case StoreReadOnly() if not settings.store:
            return failed("files read only", check, detail, f"chmod -R u+rwX {folder}")
        case StoreUnavailable() if (settings.data / "postgres" / "server.json").exists():
            return failed("own server down", check, detail, "homing postgres start")
        case StoreUnavailable():
            return failed("server down", check, detail, f"start the PostgreSQL server at {address}")
        case StoreTooNew():
            return failed("store too new", check, detail, "pip install --upgrade homing")
        case StoreBusy():
            return failed("store busy", check, detail, "homing doctor, once the other process is done")
        case StoreCorrupt() if BACKUP not in error.message:
            return failed("index damaged", check, detail, "homing repair")
        case StoreCorrupt():
            return lost(settings, check, detail)
        case StoreError(details={"library": str(library)}):
            return failed("library unreadable", check, detail, f"pip install --force-reinstall {library}")
        case InvalidArgument():
            return failed("address wrong", check, detail, "correct `store` in homing.toml, or HOMING_STORE")
        case StoreError() if "CREATE EXTENSION" in error.message:
            return failed("pgvector missing", check, detail, f"{psql(settings.store)} -c 'CREATE EXTENSION vector'")
    if (advice := error.message.rpartition("; ")[2]) != error.message:
        return failed("advised", check, detail, advice)
    return lost(settings, check, detail)
