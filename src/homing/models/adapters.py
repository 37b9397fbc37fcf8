"""From a configured model to what embeds: made once, kept, and made again when its configuration changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from homing.embedders.cached import Cached
from homing.embedders.local import LocalProvider
from homing.embedders.model_folder import BUNDLED, ModelFolder
from homing.embedders.provider import Calibrated, EmbeddingProvider, Observed
from homing.embedders.registry import PROVIDER_TYPE_TO_EMBEDDING_TYPE, create
from homing.embedders.resilient import Resilient
from homing.embedders.secret import Secret
from homing.errors import ConfigError, ModelNotReady, NotFound, UnknownProvider
from homing.models.records import LOCAL, LLMModel, LLMProvider, ModelConfig
from homing.vectors import Scale

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What adapters need beside their own configuration.

    `refer` turns `${VARIABLE}` into the key itself; `models` is the folder of pulled models; `cache` is the file that
    vectors are remembered in, if any.
    """

    refer: Callable[[str], str]
    models: Path
    cache: Path | None = None
    proxy: str = ""


class Adapters:
    """The adapters in use, by model."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._lock = threading.Lock()
        self._made: dict[tuple[int, str], tuple[tuple[LLMProvider, LLMModel], EmbeddingProvider]] = {}

    def get_or_create(self, provider: LLMProvider, model: LLMModel) -> EmbeddingProvider:
        """What embeds with this model: the same object for as long as its configuration stays the same."""
        # Being the default changes nothing about how a model is asked.
        made_for = (provider, replace(model, is_default=False))
        with self._lock:
            held = self._made.get((model.provider_id, model.model_key))
            if held is not None and held[0] == made_for:
                return held[1]
            made = self._make(provider, model)
            self._made[model.provider_id, model.model_key] = (made_for, made)
        if held is not None:
            _close(held[1])
        return made

    def unlisted(self, name: str) -> EmbeddingProvider:
        """What embeds with a local model that nobody configured: from its folder, or from the package."""
        return self.get_or_create(
            LLMProvider(0, LOCAL, LOCAL), LLMModel(0, 0, name, "embedding", ModelConfig(local=True))
        )

    def made(self) -> list[EmbeddingProvider]:
        """The adapters that were made until now."""
        with self._lock:
            return [adapter for _, adapter in self._made.values()]

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            held, self._made = self._made, {}
        for _, adapter in held.values():
            _close(adapter)

    def _make(self, provider: LLMProvider, model: LLMModel) -> EmbeddingProvider:
        is_local = model.model_config.local or provider.type == LOCAL
        adapter: EmbeddingProvider = Observed(self._local(model) if is_local else self._remote(provider, model))
        if self._surroundings.cache is not None:
            # A local model embeds questions and documents alike, so one cached row serves both.
            adapter = Cached(adapter, self._surroundings.cache, by_kind=not is_local)
        fitted = model.model_config.scale
        return adapter if fitted is None else Calibrated(adapter, Scale(fitted.border, fitted.steepness))

    def _local(self, model: LLMModel) -> EmbeddingProvider:
        local = LocalProvider(local_folder(model, self._surroundings.models))
        width = model.model_config.dimensions
        if width is not None and width != local.dimensions:
            raise ModelNotReady(
                f"{model.model_key} is configured with {width} dimensions, its files have {local.dimensions}; "
                "correct modelConfig.dimensions or modelPath"
            )
        return local

    def _remote(self, provider: LLMProvider, model: LLMModel) -> EmbeddingProvider:
        kind = PROVIDER_TYPE_TO_EMBEDDING_TYPE.get(provider.type)
        if kind is None:
            known = ", ".join(sorted({*PROVIDER_TYPE_TO_EMBEDDING_TYPE, LOCAL}))
            raise UnknownProvider(f"{provider.name}: {provider.type!r} has no embeddings; types that have: {known}")
        config = model.model_config
        options: dict[str, Any] = {
            "model": model.model_key,
            "api_key": self._key(provider),
            "base_url": provider.base_url,
            "dimensions": config.dimensions,
            "timeout": None if config.timeout is None else config.timeout / 1000,
            "endpoint": config.api_endpoint if kind == "openai" else "",
            "proxy": "" if urlsplit(provider.base_url).hostname in LOOPBACK else self._surroundings.proxy,
        }
        return Resilient(create(kind, **{name: value for name, value in options.items() if value}))

    def _key(self, provider: LLMProvider) -> Secret:
        try:
            return Secret(self._surroundings.refer(provider.api_key.reveal()))
        except ConfigError as error:
            raise ModelNotReady(f"provider {provider.name!r}: {error.message}") from error


def local_folder(model: LLMModel, models: Path) -> Path:
    """Where the files of a local model are."""
    if model.model_config.model_path:
        return Path(model.model_config.model_path).expanduser()
    if model.model_key == ModelFolder.read(BUNDLED).name:
        return BUNDLED
    folder = models.expanduser() / model.model_key
    if not folder.is_dir():
        raise NotFound(
            f"no model named {model.model_key!r} in {models}; fetch it with `homing models pull {model.model_key}`"
        )
    return folder


def _close(adapter: EmbeddingProvider) -> None:
    if close := getattr(adapter, "close", None):
        close()
