"""Where settings become objects: which embedder the names in the configuration mean."""

from __future__ import annotations

from pathlib import Path

from homing.config import EmbeddingSettings, Settings
from homing.embedders.cached import Cached
from homing.embedders.local import LocalProvider
from homing.embedders.model_folder import BUNDLED, DESCRIPTION, ModelFolder
from homing.embedders.provider import EmbeddingProvider
from homing.errors import NotFound

CACHE = "cache.db"


def resolve_embedder(settings: Settings) -> EmbeddingProvider | None:
    """The embedder that the settings name, caching in the data folder; None where they name none."""
    provider = _local(settings.embedding, settings.models) if settings.embedding.provider == "bundled" else None
    if provider is None:
        return None
    return Cached(provider, settings.data / CACHE)


def _local(embedding: EmbeddingSettings, models: Path) -> LocalProvider:
    if not embedding.model or embedding.model == ModelFolder.read(BUNDLED).name:
        return LocalProvider()
    folder = models.expanduser() / embedding.model
    if not folder.is_dir():
        raise NotFound(f"no model named {embedding.model!r} in {models}; fetch it with `homing models pull`")
    return LocalProvider(folder)


def local_models(settings: Settings) -> list[ModelFolder]:
    """The models that run on this machine: the bundled one first, then the pulled ones by name."""
    pulled = sorted(path.parent for path in settings.models.expanduser().glob(f"*/{DESCRIPTION}"))
    return [ModelFolder.read(folder) for folder in (BUNDLED, *pulled)]
