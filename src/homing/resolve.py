"""Where settings become objects: which embedder the names in the configuration mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from homing.config import ProviderSettings, Settings, refer, unset_variables
from homing.database.lazy import LazyDatabase
from homing.embedders.cached import Cached
from homing.embedders.local import LocalProvider
from homing.embedders.model_folder import BUNDLED, DESCRIPTION, ModelFolder
from homing.embedders.provider import Chosen, EmbeddingProvider, layers
from homing.embedders.registry import Backend, ProviderEntry, resolve_backend
from homing.errors import ConfigError, ModelNotReady
from homing.models.choice import Models
from homing.models.keys import NAME, Keys
from homing.models.manager import AdapterOptions
from homing.secret import Secret

if TYPE_CHECKING:
    from homing.chat import OllamaLLM, OpenAILLM

CACHE = "cache.db"


def resolve_embedder(settings: Settings) -> EmbeddingProvider | None:
    """The embedder that holds now, caching in the data folder; None where embedding is off.

    A model that the settings name wins; else the default in the database of the data folder; else the bundled one.
    """
    return open_models(settings, LazyDatabase(settings.database)).embedder()


def open_models(settings: Settings, database: LazyDatabase, embedder: EmbeddingProvider | None = None) -> Models:
    """The models of the data folder: under these settings, or an embedder that holds whatever they say.

    The database stays the caller's to close.
    """
    keys = keys_of(settings)
    options = AdapterOptions(
        keys.refer,
        settings.models,
        settings.data / CACHE,
        settings.proxy,
        settings.embedding.query_deadline,
        keys.keep,
    )
    if embedder is not None:
        return Models(database, options, named=lambda: embedder, explicit=True)
    return Models(
        database,
        options,
        named=lambda: named_embedder(settings, options),
        explicit=names_a_model(settings),
        embeds=bool(settings.embedding.provider_id or settings.embedding.provider),
    )


def provider_of(settings: Settings, identity: str) -> EmbeddingProvider:
    """The embedder of an identity, made for a process that does nothing but embed: no cache, and one thread.

    Raises EmbeddingError where these settings, on this machine, have none of that identity.
    """
    found = open_models(settings, LazyDatabase(settings.database)).provider(identity)
    if found.id != identity:
        raise ModelNotReady(f"this machine has {found.id!r} where {identity!r} is needed; pull or configure that model")
    for layer in layers(found):
        if isinstance(layer, LocalProvider):
            return layer.with_threads(1)
        if not isinstance(layer, Cached | Chosen):
            return layer
    return found


def keys_of(settings: Settings) -> Keys:
    """Where the keys of providers are: beside the file that their accounts are in, or nowhere here."""
    return Keys(settings.database.with_name(NAME) if isinstance(settings.database, Path) else None, refer)


def unset_keys(settings: Settings, models: Models) -> list[str]:
    """The variables with keys of providers that are not set where this runs, by name."""
    named = [one.api_key.get_secret_value() for one in settings.providers.values()]
    return unset_variables([*named, *(one.api_key.reveal() for one in models.providers() if one.enabled)])


def names_a_model(settings: Settings) -> bool:
    """Whether somebody wrote down which model to use, rather than leave it to the database and the defaults."""
    embedding = settings.embedding
    return bool(embedding.provider_id or embedding.model or "provider" in embedding.model_fields_set)


def named_embedder(settings: Settings, options: AdapterOptions) -> EmbeddingProvider | None:
    """The embedder that the settings alone mean; None where they say there is none.

    A model on this machine is used as it is; a remote one gets a deadline, retries and a circuit breaker.
    """
    embedding = settings.embedding
    if not embedding.provider_id and embedding.provider == "bundled":
        # Nothing here treats questions and documents differently, so one cached row serves both.
        return options.remembered(options.local(embedding.model), by_kind=False)
    backend = embedding_backend(settings)
    if not backend:
        return None
    if not embedding.model:
        raise ConfigError('embedding.model is not set; name the model, e.g. model = "text-embedding-3-small"')
    chosen = settings.providers.get(embedding.provider_id)
    remote = options.remote(
        backend.type,
        model=embedding.model,
        api_key=Secret(options.refer(backend.api_key.reveal())),
        base_url=chosen.base_url if chosen else embedding.local.base_url,
        dimensions=embedding.dimensions,
    )
    return options.remembered(remote, by_kind=True)


def named_chat(settings: Settings) -> OpenAILLM | OllamaLLM | None:
    """The chat model that reads sentences to the home; None where the settings name none."""
    account, _, model = settings.devices.chat.partition("/")
    if not account:
        return None
    from homing.chat import DashScopeLLM, OllamaLLM, OpenAILLM

    provider = settings.providers.get(account) or (
        ProviderSettings.model_validate({"type": "ollama", "base_url": settings.embedding.local.base_url})
        if account == "ollama"
        else None
    )
    if provider is None or not model:
        known = ", ".join(["ollama", *settings.providers])
        raise ConfigError(
            f"devices.chat is written account/model, with an account from `providers` (known: {known}); "
            f"got {settings.devices.chat!r}"
        )
    adapters: dict[str, Callable[..., OpenAILLM | OllamaLLM]] = {"ollama": OllamaLLM, "dashscope": DashScopeLLM}
    more = {"base_url": provider.base_url} if provider.base_url else {}
    key = provider.api_key.get_secret_value()
    return adapters.get(provider.type.lower(), OpenAILLM)(model, api_key=key, **more)


def embedding_backend(settings: Settings) -> Backend:
    """The type and key that `embedding.provider_id` or `embedding.provider = "local"` mean; empty for neither."""
    entries = {
        name: ProviderEntry(one.type, Secret(one.api_key.get_secret_value()))
        for name, one in settings.providers.items()
    }
    return resolve_backend(settings.embedding.provider_id, settings.embedding.provider, entries)


def local_models(settings: Settings) -> list[ModelFolder]:
    """The models that run on this machine: the bundled one first, then the pulled ones by name."""
    pulled = sorted(path.parent for path in settings.models.expanduser().glob(f"*/{DESCRIPTION}"))
    return [ModelFolder.read(folder) for folder in (BUNDLED, *pulled)]
