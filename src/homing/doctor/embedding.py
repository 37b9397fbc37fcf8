"""Whether the settings for embedding and recall can work, and whether the provider answers (REQ-EMB-009)."""

from __future__ import annotations

import time
from collections.abc import Iterator

from homing.config import EmbeddingSettings, Settings, refer
from homing.doctor.finding import Finding, opened
from homing.embedders.registry import PROVIDER_TYPE_TO_EMBEDDING_TYPE, create
from homing.errors import ConfigError, DimensionMismatch, HomingError
from homing.memory.content import COLLECTIONS
from homing.resolve import embedding_backend, local_models, resolve_embedder
from homing.secret import Secret

CHECK = "embedding"
VARIABLES = {"openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY", "dashscope": "DASHSCOPE_API_KEY"}
MANY_RESULTS = 100
ON_THIS_MACHINE = "local/"
"""How the identities of models begin that run in this process."""


def configured(settings: Settings) -> list[Finding]:
    """What is wrong with the settings, each with the line to change; one line where nothing is."""
    embedding = settings.embedding
    if not embedding.provider_id and not embedding.provider:
        message = "not configured: embedding.provider_id and embedding.provider are empty; keywords only"
        zh = "没有配置：embedding.provider_id 和 embedding.provider 都是空的；只用关键词"
        return [Finding(CHECK, "skip", message, detail_zh=zh)]
    problems = [*_provider(settings), *_recall(embedding)]
    return problems or [Finding(CHECK, "ok", _described(settings))]


def remote_unasked(settings: Settings) -> Finding | None:
    """For a model behind an API: that it was not asked. None for a model on this machine, or for none at all."""
    try:
        embedder = resolve_embedder(settings)
    except HomingError as error:
        return Finding("model", "fail", f"{error.code}: {error.message}", "homing config show")
    if embedder is None or embedder.id.startswith(ON_THIS_MACHINE):
        return None
    message, zh = f"{embedder.id} is behind an API and was not asked", f"{embedder.id} 要走接口，这次没有问它"
    return Finding("model", "skip", message, "homing doctor --live", zh)


def answers(settings: Settings) -> list[Finding]:
    """Whether the configured provider embeds a text that nobody embedded before, at the width that is expected."""
    embedder = resolve_embedder(settings)
    if embedder is None:
        return []
    started = time.perf_counter()
    try:
        width = embedder.embed([f"探针 probe {time.time_ns()}"]).shape[1]
    except DimensionMismatch as error:
        return [_fail(error.message, f"embedding.dimensions = {error.details.get('actual', 'what the model gives')}")]
    milliseconds = (time.perf_counter() - started) * 1000
    return [
        Finding(CHECK, "ok", f"{embedder.id} answered in {milliseconds:.0f} ms with {width} dimensions, as expected"),
        *_stored_widths(settings, embedder.id, width),
    ]


def _stored_widths(settings: Settings, model: str, width: int) -> Iterator[Finding]:
    with opened(settings) as store:
        infos = [] if store is None else store.collections()
    for info in infos:
        if info.embedded and info.model == model and info.dimensions != width:
            yield _fail(
                f"collection {info.name} holds vectors of {info.dimensions} dimensions, the model gives {width}",
                f"embedding.dimensions = {info.dimensions}",
            )


def _provider(settings: Settings) -> Iterator[Finding]:
    embedding = settings.embedding
    name = embedding.provider_id
    if name and name not in settings.providers:
        known = ", ".join(sorted(settings.providers)) or "none"
        yield _fail(
            f"embedding.provider_id is {name!r}, but there is no such provider; known: {known}",
            f'[providers.{name}] type = "openai", api_key = "${{OPENAI_API_KEY}}"',
        )
        return
    if name and settings.providers[name].type not in PROVIDER_TYPE_TO_EMBEDDING_TYPE:
        known = ", ".join(sorted(PROVIDER_TYPE_TO_EMBEDDING_TYPE))
        yield _fail(
            f"providers.{name} is of type {settings.providers[name].type!r}, which has no embeddings",
            f"embedding.provider_id = the name of a provider of type {known}",
        )
        return
    backend = embedding_backend(settings)
    if not backend:
        yield from _on_this_machine(settings)
        return
    if backend.type != "local" and not backend.api_key:
        variable = VARIABLES.get(backend.type, "API_KEY")
        yield _fail(f"providers.{name} has no API key", f'providers.{name}.api_key = "${{{variable}}}"')
    elif unset := _unset(backend.api_key):
        yield _fail(f"providers.{name}: {unset}", "export it, or write the key itself")
    if not embedding.model:
        yield _fail(
            "embedding.model is not set",
            f'embedding.model = a model of {backend.type}, as in "{_example(backend.type)}"',
        )
    else:
        yield from _width(embedding, backend.type)


def _unset(key: Secret) -> str:
    try:
        refer(key.reveal())
    except ConfigError as error:
        return error.message
    return ""


def _on_this_machine(settings: Settings) -> Iterator[Finding]:
    embedding = settings.embedding
    models = local_models(settings)
    chosen = next((one for one in models if not embedding.model or one.name == embedding.model), None)
    if chosen is None:
        yield _fail(f"there is no model {embedding.model!r} on this machine", f"homing models pull {embedding.model}")
    elif embedding.dimensions not in (None, chosen.dimensions):
        yield Finding(
            CHECK,
            "warn",
            f"embedding.dimensions is {embedding.dimensions}, but {chosen.name} has {chosen.dimensions} and no choice",
            f"embedding.dimensions = {chosen.dimensions}, or leave it out",
        )


def _width(embedding: EmbeddingSettings, kind: str) -> Iterator[Finding]:
    try:
        own = create(kind, model=embedding.model, **({} if kind == "local" else {"api_key": "unasked"})).dimensions
    except HomingError:
        own = 0
    if not own and embedding.dimensions is None:
        yield _fail(
            f"the width of {embedding.model!r} is not known here", "embedding.dimensions = the width of its vectors"
        )
    elif own and embedding.dimensions is not None and embedding.dimensions > own:
        yield _fail(
            f"embedding.dimensions is {embedding.dimensions}, but {embedding.model} gives at most {own}",
            f"embedding.dimensions = {own}, or leave it out",
        )


def _recall(embedding: EmbeddingSettings) -> Iterator[Finding]:
    rag = embedding.rag
    if unknown := [name for name in rag.collections if name not in COLLECTIONS]:
        yield _fail(
            f"embedding.rag.collections names {', '.join(unknown)}, which does not exist",
            f"embedding.rag.collections = any of {', '.join(COLLECTIONS)}",
        )
    if rag.max_results > MANY_RESULTS:
        yield Finding(
            CHECK,
            "warn",
            f"embedding.rag.max_results is {rag.max_results}: more than a prompt has room for",
            "embedding.rag.max_results = 5",
        )
    if rag.max_distance >= 1:
        yield Finding(
            CHECK,
            "warn",
            f"embedding.rag.max_distance is {rag.max_distance:g}: unrelated texts are nearer, so it filters nothing",
            "embedding.rag.max_distance = 0 (off), or about 0.6",
        )


def _described(settings: Settings) -> str:
    embedding = settings.embedding
    backend = embedding_backend(settings)
    if not backend:
        model = embedding.model or local_models(settings)[0].name
        message = f"{model} on this machine"
    elif embedding.provider_id:
        key = "no key needed" if backend.type == "local" else "key set"
        message = f"{embedding.model} by providers.{embedding.provider_id} ({backend.type}, {key})"
    else:
        message = f"{embedding.model} by Ollama at {embedding.local.base_url}"
    return f"{message}; recall is {'on' if embedding.rag.enabled else 'off (embedding.rag.enabled)'}"


def _example(kind: str) -> str:
    names = {"openai": "text-embedding-3-small", "google": "gemini-embedding-001", "dashscope": "text-embedding-v4"}
    return names.get(kind, "nomic-embed-text")


def _fail(detail: str, mend: str) -> Finding:
    return Finding(CHECK, "fail", detail, mend)
