"""The service of specification 000: skills in a LanceDB folder of their own, beside the database of the models."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from homing.config import load, refer
from homing.database.lazy import LazyDatabase
from homing.embedders.cached import Cached
from homing.embedders.local import LocalProvider
from homing.embedders.provider import EmbeddingProvider
from homing.engine import Engine
from homing.errors import EmbeddingError, HomingError, LanceSearchError, RetrievalFailed, StoreError
from homing.models.choice import Models
from homing.models.manager import AdapterOptions
from homing.skills.finding import FoundSkills
from homing.skills.index import HEADS
from homing.skills.service import SkillService
from homing.stores.lance import preload

log = logging.getLogger(__name__)

FOLDER = "skills.lance"
CACHE = "cache.db"
FIELDS = {"name": False, "description": False, "tags": True}
"""The columns of the table `skills` beside id, vector and metadata; whether each is a list."""
WIDTH = 384
"""Width of the vector column until a model says another."""


class ToolRetrievalService(SkillService):
    """Indexes skills in `data_dir`/skills.lance and finds the ones that a request needs.

    The table `skills` there has the fields id, name, description, tags, vector and metadata. Which model embeds is
    asked of `models` before every piece of work (the default in the data folder's database), so a new default holds
    from the next call; `embedder` fixes one instead. Opens by itself; `initialize` does so at a time of your choice.
    """

    def __init__(
        self,
        data_dir: str | Path = "data",
        *,
        models: Models | None = None,
        embedder: EmbeddingProvider | None = None,
    ) -> None:
        super().__init__(self._open, data_dir)
        self._database = LazyDatabase(Path(data_dir) / "homing.db")
        self._own = _models_of(Path(data_dir), self._database) if models is None and embedder is None else None
        self._models = models or self._own
        self._embedder = embedder
        self._opened: Engine | None = None
        self._opening = threading.Lock()
        # The library takes seconds to import; they pass while the program does other things.
        preload()

    def initialize(self) -> None:
        """Open the table, creating it where there is none, and load a model that runs in this process.

        Existing data is left as it is. A model that cannot be loaded costs a warning. Raises LanceSearchError.
        """
        if self._models is not None and not self._models.explicit:
            self._models.config.ensure_default_embedding_model()
        super().initialize()

    def find_relevant_skills(
        self, query: str, limit: int = 5, threshold: float | None = None, *, cut: bool = False
    ) -> FoundSkills:
        """The skills that fit a request; see `SkillService`. Raises LanceSearchError where the store fails."""
        try:
            return super().find_relevant_skills(query, limit, threshold, cut=cut)
        except (StoreError, RetrievalFailed) as error:
            raise _unreachable(error) from error

    def close(self) -> None:
        """Let go of the files. A change of the model that is under way is taken up by the next process."""
        with self._opening:
            if self._opened is not None:
                self._opened.close()
                self._opened.store.close()
            if self._own is not None:
                self._own.close()
            self._database.close()

    def _open(self) -> Engine:
        from homing.stores.lance.shown import ShownStore

        with self._opening:
            if self._opened is None:
                width, model = self._space()
                try:
                    self._folder.mkdir(parents=True, exist_ok=True)
                    store = ShownStore(self._folder / FOLDER, HEADS, FIELDS, width=width, model=model)
                except (StoreError, OSError) as error:
                    raise _unreachable(error) from error
                log.info("LanceDB initialized with skills table" if store.created else "LanceDB opened")
                self._opened = Engine(store, self._models or self._embedder, database=self._database.open())
            return self._opened

    def _space(self) -> tuple[int, str]:
        """The width and the identity of the default model, if it can be had."""
        try:
            made = self._models.provider() if self._models is not None else self._embedder
            return (WIDTH, "") if made is None else (made.dimensions, made.id)
        except EmbeddingError:
            return WIDTH, ""


def _unreachable(error: Exception) -> LanceSearchError:
    cause = error.message if isinstance(error, HomingError) else str(error)
    return LanceSearchError(f"LanceDB connection failed: {cause}", details={"cause": getattr(error, "code", "OS")})


def _models_of(data: Path, database: LazyDatabase) -> Models:
    settings = load().settings
    return Models(
        database,
        AdapterOptions(refer, settings.models, data / CACHE, settings.proxy, settings.embedding.query_deadline),
        named=lambda: Cached(LocalProvider(), data / CACHE, by_kind=False),
        explicit=False,
    )
