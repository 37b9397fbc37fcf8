"""Whether the settings for embedding and recall can work, and whether the provider answers (REQ-EMB-009)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing

from homing.config import EmbeddingSettings, Settings, unset_variables
from homing.database.lazy import LazyDatabase
from homing.doctor.finding import Finding, failed, fine, quoted, wrong
from homing.embedders.model_folder import BUNDLED
from homing.embedders.pull import MODELS
from homing.embedders.registry import PROVIDER_TYPE_TO_EMBEDDING_TYPE, create
from homing.errors import DimensionMismatch, EmbeddingError, HomingError, InvalidKey, ModelNotReady
from homing.memory.content import COLLECTIONS
from homing.resolve import embedding_backend, local_models, names_a_model, open_models, resolve_embedder

CHECK = "embedding"
EXAMPLES = {"openai": "text-embedding-3-small", "google": "gemini-embedding-001", "dashscope": "text-embedding-v4"}
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
    return problems or [fine(CHECK, *_described(settings))]


def remote_unasked(settings: Settings) -> list[Finding]:
    """For a model behind an API: that it was not asked. Nothing for a model on this machine, or for none at all."""
    embedder = resolve_embedder(settings)
    if embedder is None or embedder.id.startswith(ON_THIS_MACHINE):
        return []
    message, zh = f"{embedder.id} is behind an API and was not asked", f"{embedder.id} 要走接口，这次没有问它"
    return [Finding("model", "skip", message, "homing doctor --live", zh)]


def answers(settings: Settings) -> list[Finding]:
    """Whether the configured provider embeds a text that nobody embedded before, at the width that is expected."""
    embedder = resolve_embedder(settings)
    if embedder is None:
        return []
    started = time.perf_counter()
    try:
        width = embedder.embed([f"探针 probe {time.time_ns()}"]).shape[1]
    except DimensionMismatch as error:
        actual = error.details["actual"]
        return [failed("width wrong", CHECK, error.message, f"embedding.dimensions = {actual}")]
    milliseconds = (time.perf_counter() - started) * 1000
    message = f"{embedder.id} answered in {milliseconds:.0f} ms with {width} dimensions, as expected"
    return [fine(CHECK, message, f"{embedder.id} 用时 {milliseconds:.0f} 毫秒，{width} 维，与设置一致")]


def silent(settings: Settings, check: str, error: EmbeddingError) -> Finding:
    """Why a model does not embed."""
    detail = f"{error.code}: {error.message}"
    if isinstance(error, ModelNotReady):
        if str(BUNDLED) in error.message:
            return failed("packaged model damaged", check, detail, "pip install --force-reinstall homing")
        return failed("model damaged", check, detail, f"homing models pull {quoted(settings.embedding.model)}")
    account = settings.embedding.provider_id
    if not isinstance(error, InvalidKey):
        return failed("provider down", check, detail, "homing doctor --live, once the provider answers")
    if account:
        mend = f"correct providers.{account}.api_key, or the variable that it names"
        return failed("provider rejects key", check, detail, mend)
    with closing(LazyDatabase(settings.database)) as database, closing(open_models(settings, database)) as models:
        default = models.default_model()
        name = models.config.get_provider(default.provider_id).name if default is not None else ""
        return failed("key rejected", check, detail, f"homing providers key {quoted(name)}")


def unfit(settings: Settings, check: str, detail: str, zh: str) -> Finding:
    """A model for which texts that are related are no nearer than others."""
    if names_a_model(settings):
        return failed("model unfit", check, detail, 'embedding = { provider = "bundled" }', zh)
    return failed("default unfit", check, detail, f"homing models default {local_models(settings)[0].name}", zh)


def _provider(settings: Settings) -> Iterator[Finding]:
    embedding = settings.embedding
    name = embedding.provider_id
    if name and name not in settings.providers:
        known = ", ".join(sorted(settings.providers)) or "none"
        message = f"embedding.provider_id is {name!r}, but there is no such provider; known: {known}"
        mend = f'providers.{name} = {{ type = "openai", api_key = "${{OPENAI_API_KEY}}" }}'
        yield failed("provider unknown", CHECK, message, mend)
        return
    if name and settings.providers[name].type not in PROVIDER_TYPE_TO_EMBEDDING_TYPE:
        kind, known = settings.providers[name].type, ", ".join(sorted(PROVIDER_TYPE_TO_EMBEDDING_TYPE))
        message = f"providers.{name} is of type {kind!r}, which has no embeddings; these types have: {known}"
        able = (one for one, its in settings.providers.items() if its.type in PROVIDER_TYPE_TO_EMBEDDING_TYPE)
        other = next(able, "")
        yield failed("provider without embeddings", CHECK, message, f'embedding.provider_id = "{other}"')
        return
    backend = embedding_backend(settings)
    if not backend:
        yield from _on_this_machine(settings)
        return
    if backend.type != "local" and not backend.api_key:
        variable = VARIABLES.get(backend.type, "API_KEY")
        message = f"providers.{name} has no API key"
        yield failed("provider without key", CHECK, message, f'providers.{name}.api_key = "${{{variable}}}"')
    for variable in unset_variables([backend.api_key.reveal()]):
        message = f"providers.{name} reads its key from {variable}, which is not set"
        yield failed("variable unset", CHECK, message, f"export {variable}=KEY")
    if not embedding.model:
        mend = f"embedding.model = {json.dumps(EXAMPLES.get(backend.type, 'nomic-embed-text'))}"
        yield failed("model unnamed", CHECK, "embedding.model is not set", mend)
    else:
        yield from _width(embedding, backend.type)


def _on_this_machine(settings: Settings) -> Iterator[Finding]:
    embedding = settings.embedding
    models = local_models(settings)
    chosen = next((one for one in models if not embedding.model or one.name == embedding.model), None)
    if chosen is None:
        message = f"there is no model {embedding.model!r} on this machine"
        if embedding.model in MODELS:
            yield failed("model not pulled", CHECK, message, f"homing models pull {embedding.model}")
        else:
            yield failed("model unknown", CHECK, message, f'embedding.model = "{models[0].name}"')
    elif embedding.dimensions not in (None, chosen.dimensions):
        has = f"{chosen.name} has {chosen.dimensions} and no choice"
        message = f"embedding.dimensions is {embedding.dimensions}, but {has}"
        yield wrong("width fixed", CHECK, "warn", message, f"embedding.dimensions = {chosen.dimensions}")


def _width(embedding: EmbeddingSettings, kind: str) -> Iterator[Finding]:
    try:
        own = create(kind, model=embedding.model, **({} if kind == "local" else {"api_key": "unasked"})).dimensions
    except HomingError:
        own = 0
    if not own and embedding.dimensions is None:
        mend = "embedding.dimensions = WIDTH"
        yield failed("width unknown", CHECK, f"how wide the vectors of {embedding.model!r} are is not known here", mend)
    elif own and embedding.dimensions is not None and embedding.dimensions > own:
        message = f"embedding.dimensions is {embedding.dimensions}, but {embedding.model} gives at most {own}"
        yield failed("width too large", CHECK, message, f"embedding.dimensions = {own}")


def _recall(embedding: EmbeddingSettings) -> Iterator[Finding]:
    rag = embedding.rag
    if unknown := [name for name in rag.collections if name not in COLLECTIONS]:
        message = f"embedding.rag.collections names {', '.join(unknown)}, which does not exist"
        names = json.dumps([name for name in rag.collections if name in COLLECTIONS] or list(COLLECTIONS))
        yield failed("recall collections", CHECK, message, f"embedding.rag.collections = {names}")
    if rag.max_results > MANY_RESULTS:
        message = f"embedding.rag.max_results is {rag.max_results}: more than a prompt has room for"
        yield wrong("recall results", CHECK, "warn", message, "embedding.rag.max_results = 5")
    if rag.max_distance >= 1:
        distance = f"embedding.rag.max_distance is {rag.max_distance:g}"
        message = f"{distance}: unrelated texts are nearer, so it filters nothing"
        yield wrong("recall distance", CHECK, "warn", message, "embedding.rag.max_distance = 0.6")


def _described(settings: Settings) -> tuple[str, str]:
    embedding = settings.embedding
    backend = embedding_backend(settings)
    if not backend:
        model = embedding.model or local_models(settings)[0].name
        message, zh = f"{model} on this machine", f"本机的 {model}"
    elif embedding.provider_id:
        key, key_zh = ("no key needed", "不需要密钥") if backend.type == "local" else ("key set", "已有密钥")
        message = f"{embedding.model} by providers.{embedding.provider_id} ({backend.type}, {key})"
        zh = f"providers.{embedding.provider_id}（{backend.type}，{key_zh}）的 {embedding.model}"
    else:
        address = embedding.local.base_url
        message, zh = f"{embedding.model} by Ollama at {address}", f"{address} 的 Ollama 提供的 {embedding.model}"
    if embedding.rag.enabled:
        return f"{message}; recall is on", f"{zh}；回忆已开启"
    return f"{message}; recall is off (embedding.rag.enabled)", f"{zh}；回忆已关闭（embedding.rag.enabled）"
