"""Which model embeds skills: asked before every piece of work, so that a new default holds from the next call."""

from __future__ import annotations

import logging
from pathlib import Path

from homing.config import load, refer
from homing.database.lazy import LazyDatabase
from homing.embedders.cached import Cached
from homing.embedders.local import LocalProvider
from homing.embedders.provider import EmbeddingProvider
from homing.errors import ConfigError, EmbeddingError, ModelNotReady, NotFound
from homing.models.adapters import Surroundings
from homing.models.choice import Models

log = logging.getLogger(__name__)

CACHE = "cache.db"


class CurrentModel:
    """The default model of a data folder, or a given embedder that stays."""

    def __init__(self, data: Path, models: Models | None, embedder: EmbeddingProvider | None) -> None:
        self._given = embedder
        self._database = LazyDatabase(data / "homing.db")
        self._owned = _models_of(data, self._database) if models is None and embedder is None else None
        self._models = models or self._owned

    def ensure_default(self) -> None:
        """Make the bundled model the default, where the database names none and nobody chose another."""
        if self._models is not None and not self._models.explicit:
            self._models.config.ensure_default_embedding_model()

    def embedder(self) -> EmbeddingProvider | None:
        """What embeds now; None where embedding is off. Raises EmbeddingError where its files are not there."""
        try:
            found = self._given if self._models is None else self._models.embedder()
            # Reading the identity reads the description of the model, and loads nothing.
            return found if found is None or found.id else None
        except (NotFound, ConfigError) as error:
            raise ModelNotReady(error.message, details=error.details) from error

    def usable(self) -> EmbeddingProvider | None:
        """What embeds now; None, with a warning, also where it cannot be had."""
        try:
            return self.embedder()
        except EmbeddingError as error:
            log.warning("embedding model is not available, keywords only: %s", error)
            return None

    def for_model(self, identity: str) -> EmbeddingProvider:
        """The embedder of vectors that are there already. Raises EmbeddingError where there is none any more."""
        if self._models is not None:
            return self._models.provider(identity)
        if self._given is None or (identity and self._given.id != identity):
            raise EmbeddingError(f"the skills were embedded by {identity}, which is not the model in use; scan again")
        return self._given

    def load(self) -> None:
        """Load a model that runs in this process; one that cannot be loaded costs a warning."""
        model = self._models.default_model() if self._models is not None else None
        if model is not None and not model.model_config.local:
            return
        try:
            if (embedder := self.embedder()) is not None:
                # The question is for the tokenizer, but the whole model is loaded to answer it.
                embedder.truncated([""])
        except EmbeddingError as error:
            log.warning("embedding model failed to load, keywords only: %s", error)

    def close(self) -> None:
        """Let go of what was opened here."""
        if self._owned is not None:
            self._owned.close()
        self._database.close()


def _models_of(data: Path, database: LazyDatabase) -> Models:
    settings = load().settings
    return Models(
        database,
        Surroundings(refer, settings.models, data / CACHE, settings.proxy),
        named=lambda: Cached(LocalProvider(), data / CACHE, by_kind=False),
        explicit=False,
    )
