"""Proves that the parts work instead of asking whether they are there.

Every check does the real thing once, on scratch data, and says in one line what it saw; what is not in order names the
command that mends it.
"""

from __future__ import annotations

import platform
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from homing.config import Settings
from homing.doctor.contents import REPAIR, remembered, stored, written
from homing.doctor.embedding import answers, configured, remote_unasked
from homing.doctor.finding import Finding
from homing.doctor.in_use import places, providers, working
from homing.doctor.server import served
from homing.embedders.provider import EmbeddingProvider
from homing.engine.search import HybridOptions, search
from homing.errors import (
    ConfigError,
    EmbeddingError,
    HomingError,
    MissingExtra,
    ModelNotReady,
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


BACKUP = "restore a backup"
REINSTALL = "pip install --force-reinstall homing"


def diagnose(settings: Settings, *, live: bool = False) -> list[Finding]:
    """Run every check. Never raises: what a check raises is its finding.

    A model behind an API is asked only when `live` is: it costs money, and the answer depends on the network.
    """
    findings: list[Finding] = []
    for name, check in _checks(settings, live):
        findings += _tried(settings, name, check)
    return findings


def _tried(settings: Settings, name: str, check: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return check()
    except HomingError as error:
        return [Finding(name, "fail", f"{error.code}: {error.message}", _mend(error, settings))]
    except Exception as error:
        return [Finding(name, "fail", hide_passwords(f"{type(error).__name__}: {error}"), "report this as a bug")]


def _checks(settings: Settings, live: bool) -> Iterator[tuple[str, Callable[[], list[Finding]]]]:
    yield "versions", _versions
    # Before anything is opened: that alone closes what was open to others.
    seen = _tried(settings, "data", lambda: places(settings))
    yield "data", lambda: seen
    yield "providers", lambda: providers(settings)
    yield "embedding", lambda: configured(settings)
    if live:
        yield "embedding", lambda: answers(settings)
    if (unasked := None if live else remote_unasked(settings)) is not None:
        yield "model", lambda: [unasked]
    else:
        yield "model", lambda: _model(settings)
        yield "search", lambda: _search(settings)
    yield "server", lambda: served(settings)
    yield "data", lambda: stored(settings)
    yield "in use", lambda: working(settings, ask_model=live or unasked is None)
    yield "memory", lambda: remembered(settings)
    yield "documents", lambda: written(settings)


def _versions() -> list[Finding]:
    names = ("homing", "apsw", "sqlite-vec", "onnxruntime", "tokenizers", "numpy")
    versions = [f"Python {platform.python_version()}"]
    for name in names:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            return [Finding("versions", "fail", f"{name} is not installed", REINSTALL, f"没有安装 {name}")]
    return [Finding("versions", "ok", ", ".join(versions))]


def _model(settings: Settings) -> list[Finding]:
    embedder = resolve_embedder(settings)
    if embedder is None:
        message = "embeddings are off (embedding.provider is empty): keywords only"
        return [Finding("model", "skip", message, detail_zh="没有启用向量（embedding.provider 为空）：只用关键词")]
    started = time.perf_counter()
    rows = embedder.embed([text for pair in PROBES.values() for text in pair])
    milliseconds = (time.perf_counter() - started) * 1000
    related, unrelated = float(rows[0] @ rows[1]), float(rows[0] @ rows[3])
    detail = f"{embedder.id}: related {related:.2f}, unrelated {unrelated:.2f}, first answer in {milliseconds:.0f} ms"
    zh = f"{embedder.id}：相关 {related:.2f}，无关 {unrelated:.2f}，首次回答用时 {milliseconds:.0f} 毫秒"
    if related <= unrelated:
        mend = "homing models list: choose a model that knows Chinese and English"
        return [Finding("model", "fail", detail, mend, zh)]
    return [Finding("model", "ok", detail, detail_zh=zh)]


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
            message, zh = (
                f"the probe was not found ({found.reason or 'no hit'})",
                f"没有找到探针（{found.reason or '无结果'}）",
            )
            yield Finding(name, "fail", message, "report this as a bug", zh)
        else:
            took = f"{found.timings['total_ms']:.0f}"
            zh = f"写入、搜索、找到，用时 {took} 毫秒"
            yield Finding(name, "ok", f"written, searched and found in {took} ms", detail_zh=zh)


def _mend(error: HomingError, settings: Settings) -> str:
    """The command that puts right what a check ended with."""
    place = shlex.quote(str(settings.data))
    match error:
        case ConfigError():
            return "homing config show"
        case MissingExtra():
            return f"pip install 'homing[{error.details.get('extra', 'all')}]'"
        case ModelNotReady():
            return REINSTALL
        case EmbeddingError():
            return "homing models test"
        case StoreReadOnly():
            return f"chmod -R u+rwX {place}"
        case StoreUnavailable():
            return "homing postgres start, where the server is Homing's own; else start the server"
        case StoreTooNew():
            return "pip install --upgrade homing"
        case StoreBusy():
            return "homing doctor, once the other process is done"
        case StoreError() if not isinstance(error, StoreCorrupt) or BACKUP in error.message:
            # No text is left to make anything of.
            return f"{BACKUP} of {hide_passwords(str(settings.database))}"
    return REPAIR
