"""Where settings become objects: which embedder the names in the configuration mean."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from homing.config import ProviderSettings, Settings, refer
from homing.database.lazy import LazyDatabase
from homing.embedders.cached import Cached
from homing.embedders.local import LocalProvider
from homing.embedders.model_folder import BUNDLED, DESCRIPTION, ModelFolder
from homing.embedders.provider import EmbeddingProvider, Observed
from homing.embedders.registry import Backend, ProviderEntry, create, resolve_backend
from homing.embedders.resilient import Resilient
from homing.embedders.secret import Secret
from homing.errors import ConfigError, NotFound
from homing.models.choice import Models
from homing.models.manager import LOOPBACK, Surroundings

CACHE = "cache.db"


def resolve_embedder(settings: Settings) -> EmbeddingProvider | None:
    """The embedder that holds now, caching in the data folder; None where embedding is off.

    A model that the settings name wins; else the default in the database of the data folder; else the bundled one.
    """
    return open_models(settings, LazyDatabase(settings.database)).embedder()


def open_models(settings: Settings, database: LazyDatabase) -> Models:
    """The models of the data folder, under these settings. The database stays the caller's to close."""
    surroundings = Surroundings(
        refer, settings.models, settings.data / CACHE, settings.proxy, settings.embedding.query_deadline
    )
    return Models(
        database,
        surroundings,
        named=lambda: named_embedder(settings),
        explicit=names_a_model(settings),
        embeds=bool(settings.embedding.provider_id or settings.embedding.provider),
    )


def names_a_model(settings: Settings) -> bool:
    """Whether somebody wrote down which model to use, rather than leave it to the database and the defaults."""
    embedding = settings.embedding
    return bool(embedding.provider_id or embedding.model or "provider" in embedding.model_fields_set)


def named_embedder(settings: Settings) -> EmbeddingProvider | None:
    """The embedder that the settings alone mean; None where they say there is none.

    A model on this machine is used as it is; a remote one gets a deadline, retries and a circuit breaker.
    """
    embedding = settings.embedding
    if not embedding.provider_id and embedding.provider == "bundled":
        # Nothing here treats questions and documents differently, so one cached row serves both.
        return Cached(Observed(_on_this_machine(settings)), settings.data / CACHE, by_kind=False)
    backend = embedding_backend(settings)
    if not backend:
        return None
    remote = Resilient(create(backend.type, **_options(settings, backend)), deadline=embedding.query_deadline)
    return Cached(Observed(remote), settings.data / CACHE)


def embedding_backend(settings: Settings) -> Backend:
    """The type and key that `embedding.provider_id` or `embedding.provider = "local"` mean; empty for neither."""
    entries = {name: _entry(one) for name, one in settings.providers.items()}
    return resolve_backend(settings.embedding.provider_id, settings.embedding.provider, entries)


def local_models(settings: Settings) -> list[ModelFolder]:
    """The models that run on this machine: the bundled one first, then the pulled ones by name."""
    pulled = sorted(path.parent for path in settings.models.expanduser().glob(f"*/{DESCRIPTION}"))
    return [ModelFolder.read(folder) for folder in (BUNDLED, *pulled)]


def _on_this_machine(settings: Settings) -> LocalProvider:
    name = settings.embedding.model
    if not name or name == ModelFolder.read(BUNDLED).name:
        return LocalProvider()
    folder = settings.models.expanduser() / name
    if not folder.is_dir():
        raise NotFound(f"no model named {name!r} in {settings.models}; fetch it with `homing models pull {name}`")
    return LocalProvider(folder)


def _entry(provider: ProviderSettings) -> ProviderEntry:
    return ProviderEntry(provider.type, Secret(provider.api_key.get_secret_value()))


def _options(settings: Settings, backend: Backend) -> dict[str, Any]:
    embedding = settings.embedding
    if not embedding.model:
        raise ConfigError('embedding.model is not set; name the model, e.g. model = "text-embedding-3-small"')
    chosen = settings.providers.get(embedding.provider_id)
    address = embedding.local.base_url if backend.type == "local" and not chosen else ""
    address = (chosen.base_url if chosen else "") or address
    options = {
        "model": embedding.model,
        "api_key": Secret(refer(backend.api_key.reveal())),
        "base_url": address,
        "dimensions": embedding.dimensions,
        "proxy": settings.proxy if urlsplit(address).hostname not in LOOPBACK else "",
    }
    return {name: value for name, value in options.items() if value}
