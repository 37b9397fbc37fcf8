"""Embeds with any configured model, by name: what embeds is made once, kept, and made again when a setting changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from homing.embedders.cached import Cached, Observed
from homing.embedders.local import LocalProvider
from homing.embedders.model_folder import BUNDLED, ModelFolder
from homing.embedders.provider import Calibrated, EmbeddingProvider, Kind
from homing.embedders.registry import PROVIDER_TYPE_TO_EMBEDDING_TYPE, create
from homing.embedders.resilient import QUERY_DEADLINE, Resilient
from homing.errors import ConfigError, InvalidArgument, ModelNotReady, NotFound, UnknownProvider
from homing.models.config_service import LLMConfigService
from homing.models.records import LOCAL, LLMModel, LLMProvider, ModelConfig
from homing.secret import Secret
from homing.vectors import Matrix, Scale, Vector

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class AdapterOptions:
    """What adapters need beside their own configuration.

    `refer` turns `${VARIABLE}` into the key itself, and `keep_key` a key into a reference; `models` is the folder of
    pulled models; `cache` is the file that vectors are remembered in, if any; `query_deadline` is how many seconds a
    query waits for a remote model.
    """

    refer: Callable[[str], str]
    models: Path
    cache: Path | None = None
    proxy: str = ""
    query_deadline: float = QUERY_DEADLINE
    keep_key: Callable[[str], str] = str

    def local(self, name: str) -> LocalProvider:
        """A model that runs in this process: the one in the package, for an empty name as well, or a pulled one."""
        if not name or name == ModelFolder.read(BUNDLED).name:
            return LocalProvider()
        folder = self.models.expanduser() / name
        if not folder.is_dir():
            raise NotFound(f"no model named {name!r} in {self.models}; fetch it with `homing models pull {name}`")
        return LocalProvider(folder)

    def remote(self, kind: str, **options: Any) -> EmbeddingProvider:
        """A model behind an API, with a deadline, retries and a circuit breaker. An empty option is the API's own."""
        if urlsplit(options["base_url"]).hostname not in LOOPBACK:
            options["proxy"] = self.proxy
        provider = create(kind, **{name: value for name, value in options.items() if value})
        return Resilient(provider, deadline=self.query_deadline)

    def remembered(self, provider: EmbeddingProvider, *, by_kind: bool) -> EmbeddingProvider:
        """The same provider, observed, and with the cache where there is one."""
        observed = Observed(provider)
        return observed if self.cache is None else Cached(observed, self.cache, by_kind=by_kind)


class Adapters:
    """The adapters in use, by model."""

    def __init__(self, options: AdapterOptions) -> None:
        self._options = options
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
        made = self._local(model) if is_local else self._remote(provider, model)
        # A local model embeds questions and documents alike, so one cached row serves both.
        adapter = self._options.remembered(made, by_kind=not is_local)
        fitted = model.model_config.scale
        return adapter if fitted is None else Calibrated(adapter, Scale(fitted.border, fitted.steepness, fitted.fit))

    def _local(self, model: LLMModel) -> EmbeddingProvider:
        path, width = model.model_config.model_path, model.model_config.dimensions
        local = LocalProvider(Path(path).expanduser()) if path else self._options.local(model.model_key)
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
        return self._options.remote(
            kind,
            model=model.model_key,
            api_key=self._key(provider),
            base_url=provider.base_url,
            dimensions=config.dimensions,
            timeout=None if config.timeout is None else config.timeout / 1000,
            endpoint=config.api_endpoint if kind == "openai" else "",
        )

    def _key(self, provider: LLMProvider) -> Secret:
        try:
            return Secret(self._options.refer(provider.api_key.reveal()))
        except ConfigError as error:
            raise ModelNotReady(f"provider {provider.name!r}: {error.message}") from error


def _close(adapter: EmbeddingProvider) -> None:
    if close := getattr(adapter, "close", None):
        close()


@dataclass(frozen=True, slots=True)
class ConfiguredModel:
    """A model with the provider it belongs to."""

    provider: LLMProvider
    model: LLMModel


class ModelRegistry:
    """The embedding models by name."""

    def __init__(self, service: LLMConfigService) -> None:
        self._service = service

    def find_model(self, provider: str | None = None, model: str | None = None) -> ConfiguredModel:
        """The model of that provider and key.

        Without a model: the default where it is the provider's, else the provider's first. Without a provider: the one
        model of that key. Without both: the default, which is made where there is none. Disabled ones are not found.
        """
        if provider is None and model is None:
            return self.with_provider(self._service.ensure_default_embedding_model())
        named = [self.with_provider(one) for one in self._service.list_models("embedding")]
        if provider is not None:
            self._service.get_provider(provider)
            named = [one for one in named if provider in (one.provider.name, one.provider.type)]
        matching = [one for one in named if model in (None, one.model.model_key)]
        usable = [one for one in matching if one.model.enabled and one.provider.enabled]
        if not usable:
            raise NotFound(self._missing(provider, model, matching, named))
        if model is None:
            return next((one for one in usable if one.model.is_default), usable[0])
        if len(usable) > 1:
            owners = ", ".join(one.provider.name for one in usable)
            raise InvalidArgument(f"several providers have {model!r} ({owners}); name the provider too")
        return usable[0]

    def with_provider(self, model: LLMModel) -> ConfiguredModel:
        """A model with its provider."""
        return ConfiguredModel(self._service.get_provider(model.provider_id), model)

    @staticmethod
    def _missing(
        provider: str | None, model: str | None, matching: list[ConfiguredModel], named: list[ConfiguredModel]
    ) -> str:
        what = " ".join(
            [*([f"of provider {provider!r}"] if provider else []), *([f"named {model!r}"] if model else [])]
        )
        if matching:
            return f"the embedding model {what} is disabled; enable it, or name another"
        known = ", ".join(one.model.model_key for one in named) or "none yet"
        return f"no embedding model {what}; there are: {known}. Add one with `homing models add`"


class LLMManager:
    """The door to all models. Adapters are made once and kept; a change of configuration holds from the next call.

    Safe to call from several threads. Raises EmbeddingError, NotFound for what is not configured, and StoreError.
    """

    def __init__(self, service: LLMConfigService, adapters: Adapters) -> None:
        self.service = service
        self.model_registry = ModelRegistry(service)
        self._adapters = adapters

    def embed(
        self, texts: Sequence[str], provider: str | None = None, model: str | None = None, *, kind: Kind = "document"
    ) -> Matrix:
        """One row per text from the model that is named, or from the default."""
        return self.get_or_create_adapter(self.model_registry.find_model(provider, model)).embed(texts, kind=kind)

    def generate_embedding(
        self, text: str, provider: str | None = None, model: str | None = None, *, kind: Kind = "document"
    ) -> Vector:
        """The vector of one text."""
        row: Vector = self.embed([text], provider, model, kind=kind)[0]
        return row

    def generate_local_embedding(self, texts: Sequence[str], model: str) -> Matrix:
        """One row per text from a model that runs in this process; loaded at its first use and kept."""
        listed = self.service.list_models("embedding")
        found = next((one for one in listed if one.model_key == model and one.model_config.local and one.enabled), None)
        if found is not None:
            return self.get_or_create_adapter(self.model_registry.with_provider(found)).embed(texts)
        return self._adapters.unlisted(model).embed(texts)

    def get_or_create_adapter(self, found: ConfiguredModel) -> EmbeddingProvider:
        """What embeds with a model that the registry found."""
        return self._adapters.get_or_create(found.provider, found.model)

    def close(self) -> None:
        """Close every adapter. The manager may still be used and then makes new ones."""
        self._adapters.close()
