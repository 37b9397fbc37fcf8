"""Embeds with any configured model, by name."""

from __future__ import annotations

from collections.abc import Sequence

from homing.embedders.provider import EmbeddingProvider, Kind
from homing.models.adapters import Adapters
from homing.models.config_service import LLMConfigService
from homing.models.registry import Found, ModelRegistry
from homing.vectors import Matrix, Vector


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
            return self.get_or_create_adapter(Found(self.service.get_provider(found.provider_id), found)).embed(texts)
        return self._adapters.unlisted(model).embed(texts)

    def get_or_create_adapter(self, found: Found) -> EmbeddingProvider:
        """What embeds with a model that the registry found."""
        return self._adapters.get_or_create(found.provider, found.model)

    def close(self) -> None:
        """Close every adapter. The manager may still be used and then makes new ones."""
        self._adapters.close()
