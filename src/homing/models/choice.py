"""Which embedder holds right now, and which one made the vectors that are already there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property, partial

from homing.database import Database
from homing.database.lazy import LazyDatabase
from homing.embedders.model_folder import name_in
from homing.embedders.provider import Chosen, EmbeddingProvider, MissingModel
from homing.errors import EmbeddingError, HomingError, ModelNotReady, NotFound
from homing.models.config_service import LLMConfigService
from homing.models.manager import AdapterOptions, Adapters, ConfiguredModel, LLMManager
from homing.models.records import COMPONENT, LOCAL, LLMModel, LLMProvider

log = logging.getLogger(__name__)

NOT_NAMED = "no embedding model is configured; set embedding.provider or search by keywords"
NAMED_BADLY = (
    "embedding.provider_id and embedding.provider name nothing that embeds; check the name, and the type of the "
    "provider of that name (homing config show)"
)


class Models:
    """The models of one data folder.

    What the settings name wins; else the default in the database holds, from the call after it was set on; else the
    model inside the package. Reading makes no file and no table.
    """

    def __init__(
        self,
        database: LazyDatabase,
        options: AdapterOptions,
        *,
        named: Callable[[], EmbeddingProvider | None],
        explicit: bool,
        embeds: bool = True,
    ) -> None:
        self._embeds = embeds
        self._database = database
        self._adapters = Adapters(options)
        self._keep_key = options.keep_key
        self._named = named
        self._explicit = explicit
        self._lock = threading.RLock()
        self._manager: LLMManager | None = None
        self._found: Database | None = None
        self._unset: int | None = None
        """The last version of the database that was seen without a configuration."""

    @property
    def explicit(self) -> bool:
        """Whether the settings name a model, so that the default in the database does not hold."""
        return self._explicit

    @property
    def embeds(self) -> bool:
        """Whether texts are to be embedded at all; asking makes no model."""
        return self._embeds

    @property
    def database(self) -> Database:
        """What the configuration is kept in, made where it does not exist."""
        return self._database.open()

    @property
    def manager(self) -> LLMManager:
        """Embeds by name; opening it makes the tables."""
        with self._lock:
            if self._manager is None:
                self._manager = LLMManager(LLMConfigService(self.database, keep_key=self._keep_key), self._adapters)
            return self._manager

    @property
    def config(self) -> LLMConfigService:
        """Providers and models."""
        return self.manager.service

    def embedder(self) -> EmbeddingProvider | None:
        """What turns text into vectors now, and can be asked for other models; None where embedding is off."""
        provider = self._current()
        return None if provider is None else Chosen(provider, self.provider)

    def embedder_to_keep(self) -> EmbeddingProvider | None:
        """The embedder, or one that is looked for again whenever it is needed: words answer until it is there."""
        if not self._embeds:
            return None
        try:
            found = self.embedder()
        except HomingError:
            found = None
        return found or MissingModel(self.provider)

    def identity(self) -> str:
        """The identity of the model in use; empty where there is none, or none that can be had."""
        try:
            return self.provider().id
        except EmbeddingError:
            return ""

    def provider(self, identity: str = "") -> EmbeddingProvider:
        """The embedder of that identity; for an empty one, the default as it is now. Raises only EmbeddingError.

        A default that cannot be made is no reason to do without the model that other vectors were made by.
        """
        if not identity:
            try:
                current = self._current()
            except EmbeddingError:
                raise
            except HomingError as error:
                raise ModelNotReady(error.message, details=error.details) from error
            if current is None:
                raise ModelNotReady(NAMED_BADLY if self._embeds else NOT_NAMED)
            return current
        for candidate in self._candidates(identity):
            if candidate.id == identity:
                return candidate
        raise ModelNotReady(
            f"the vectors were made by {identity}, which is not configured any more; add that model again "
            "(`homing models add`), or embed again with the default (`homing models default`)",
            details={"model": identity},
        )

    def default_model(self) -> LLMModel | None:
        """The default in the database; None where nothing was configured, which means the model in the package."""
        manager = self._existing()
        return None if manager is None else manager.service.get_default_model("embedding")

    def find(self, name: str, provider: str | None = None) -> ConfiguredModel:
        """The configured model of that name; a model on this machine is configured by being named here."""
        config = self.config
        config.ensure_default_embedding_model()
        known = {one.model_key for one in self.configured()}
        if name not in known and provider in (None, LOCAL):
            with suppress(NotFound):
                width = self._adapters.unlisted(name).dimensions
                if all(one.name != LOCAL for one in self.providers()):
                    config.create_provider(LOCAL, LOCAL)
                config.create_model(LOCAL, name, model_config={"local": True, "dimensions": width})
        return self.manager.model_registry.find_model(provider, name)

    def configured(self) -> list[LLMModel]:
        """The embedding models in the database."""
        manager = self._existing()
        return [] if manager is None else manager.service.list_models("embedding")

    def providers(self) -> list[LLMProvider]:
        """The providers in the database."""
        manager = self._existing()
        return [] if manager is None else manager.service.list_providers()

    def adapter(self, model: LLMModel) -> EmbeddingProvider:
        """What embeds with a configured model."""
        return self.manager.get_or_create_adapter(self.manager.model_registry.with_provider(model))

    def made(self) -> list[EmbeddingProvider]:
        """Everything that embeds, or did, in this process; makes nothing."""
        settled = self.__dict__.get("_settled")
        return [*([] if settled is None else [settled]), *self._adapters.made()]

    def close(self) -> None:
        """Let go of every connection to a model. The database is left to who opened it."""
        with self._lock:
            self._adapters.close()
            if "_settled" in self.__dict__ and (close := getattr(self._settled, "close", None)):
                close()

    @cached_property
    def _settled(self) -> EmbeddingProvider | None:
        return self._named()

    def _current(self) -> EmbeddingProvider | None:
        if self._explicit:
            return self._settled
        model = self.default_model()
        return self._settled if model is None else self.adapter(model)

    def _existing(self) -> LLMManager | None:
        if self._manager is None:
            self._found = self._found or self._database.existing()
            if self._found is None:
                return None
            # Every search asks several times, and hardly anything was ever committed in between.
            version = self._found.version()
            if version == self._unset or not self._found.applied(COMPONENT):
                self._unset = version
                return None
        return self.manager

    def _candidates(self, identity: str) -> Iterator[EmbeddingProvider]:
        """Every embedder that may be the one, the likeliest first. What cannot be made is passed over."""
        for make in self._makers(identity):
            try:
                made = make()
            except HomingError as error:
                log.debug("passed over while looking for %s: %s", identity, error)
                continue
            if made is not None:
                yield made

    def _makers(self, identity: str) -> Iterator[Callable[[], EmbeddingProvider | None]]:
        yield self._current
        yield lambda: self._settled
        for model in self.configured():
            yield partial(self.adapter, model)
        if identity.startswith("local/"):
            yield partial(self._adapters.unlisted, name_in(identity))
