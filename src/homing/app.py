"""One folder, everything in it: what `homing.open` returns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from homing.config import Settings, load
from homing.database.lazy import is_postgres
from homing.engine.search import HybridOptions, search
from homing.errors import HomingError
from homing.records import Metadata, Retrieved, VectorRecord

if TYPE_CHECKING:
    from homing.chat import OllamaLLM, OpenAILLM
    from homing.database import Database
    from homing.database.lazy import LazyDatabase
    from homing.devices.saved import SavedDevices
    from homing.documents.folders import FollowedFolder
    from homing.documents.service import DocumentService
    from homing.embedders.provider import EmbeddingProvider
    from homing.engine.engine import Engine
    from homing.engine.worker import WorkerOptions
    from homing.files import Limits
    from homing.knowledge import KnowledgeBase
    from homing.memory.service import Memory
    from homing.models.choice import Models
    from homing.models.switch import ModelSwitch
    from homing.skills.service import SkillService
    from homing.stores.store import Store

DEFAULT_COLLECTION = "default"
OWNER = "owner"
"""The user whose data is in the folder itself: who runs the program, or the server."""


def open_app(
    path: str | Path | None = None,
    *,
    settings: Settings | None = None,
    embedder: EmbeddingProvider | None = None,
    worker: WorkerOptions | None = None,
) -> Homing:
    """Open a data folder, creating it where it does not exist. Nothing to start, nothing to download.

    Without `settings`, those of `homing.toml` and the environment hold. `path` is the folder; without one it is the
    folder that is set (`HOMING_DATA`), by default the same for every program of a user: `homing where` names it. An
    `embedder` of your own is the model in use, whatever they say, and is closed with the app where it has a `close`.
    `worker` says how texts get their vectors.
    """
    settings = settings or load().settings
    if path is not None:
        settings = settings.model_copy(update={"data": Path(path)})
    return Homing(settings, embedder=embedder, worker=worker)


class Homing:
    """An open data folder. Parts are made when they are first used; `close` (or a `with` block) lets go of them.

    With `shared`, models and skills are those of another app, which is also the one to close them: what a user of a
    server has is a folder of their own beside them, or, where the store of that app keeps users apart, their part of
    it. `user` is whose it is. `embedder` is the model in use, `worker` says how texts get their vectors.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        shared: Homing | None = None,
        user: str = OWNER,
        embedder: EmbeddingProvider | None = None,
        worker: WorkerOptions | None = None,
    ) -> None:
        self.settings = settings
        self.user = user
        self._shared = shared
        self._embedder = embedder
        self._worker = worker

    @cached_property
    def _entered(self) -> Engine | None:
        """The part of this user in the database of another app; None where this one has its own."""
        if self._shared is None or not self._shared.keeps_users_apart:
            return None
        return self._shared.engine.for_user(self.user)

    @property
    def keeps_users_apart(self) -> bool:
        """Whether every user's rows are in this one database, each behind a fence; else users have folders."""
        return is_postgres(self.settings.database)

    @cached_property
    def database(self) -> Database:
        """Where every part keeps its rows, made where it does not exist."""
        return self._lazy_database.open() if self._entered is None else self._entered.database

    @property
    def existing_database(self) -> Database | None:
        """The database; None where there is none yet. Asking makes none."""
        return self._lazy_database.existing()

    @cached_property
    def _lazy_database(self) -> LazyDatabase:
        from homing.database.lazy import LazyDatabase

        return LazyDatabase(self.settings.database)

    @cached_property
    def store(self) -> Store:
        """Where the records are."""
        from homing.stores.registry import open_store

        if self._entered is not None:
            return self._entered.store
        return open_store(
            self.settings.store_url, row_security=self.settings.row_security, database=self._lazy_database.open
        )

    @cached_property
    def engine(self) -> Engine:
        """What documents and memory stand on: the store, the models in use, and the worker that embeds."""
        from homing.engine.engine import Engine

        return self._entered or Engine(self.store, self.models, database=self.database, options=self._worker)

    @cached_property
    def models(self) -> Models:
        """Which models there are, and which one is used."""
        from homing.resolve import open_models

        if self._shared is not None:
            return self._shared.models
        return open_models(self.settings, self._lazy_database, self._embedder)

    @property
    def stores(self) -> list[Store]:
        """Every store of this folder, and every user's view of it: what a change of the model is for."""
        return [engine.store for engine in self.engine.everybody()]

    @cached_property
    def switch(self) -> ModelSwitch:
        """Changes the default model without costing anybody an answer."""
        from homing.models.switch import ModelSwitch

        return ModelSwitch(self.models, self.engine.everybody)

    @property
    def embedder(self) -> EmbeddingProvider | None:
        """What turns text into vectors now; None where the settings say there is none.

        Ask again for each piece of work: the default model may have been changed, here or in another process.
        """
        return self.models.embedder()

    @property
    def waits(self) -> bool:
        """Whether an answer may wait for others: a model behind an API, a database server, a chat model."""
        from homing.engine.source import may_wait

        try:
            return may_wait(self.store, self.models) or self._reader is not None
        except HomingError:
            # Whoever needs what cannot be opened says so.
            return False

    @property
    def search_options(self) -> HybridOptions:
        """Weights and deadline as set."""
        return HybridOptions(**self.settings.search.model_dump())

    @cached_property
    def memory(self) -> Memory:
        """What is remembered, and how it is recalled."""
        from homing.memory.service import Memory, RetrieveOptions

        recall = self.settings.embedding.rag
        return Memory(
            self.engine,
            options=RetrieveOptions(
                limit=recall.max_results,
                collections=recall.collections,
                max_distance=recall.max_distance,
                deadline=self.settings.search.deadline,
            ),
            hybrid=self.search_options,
            enabled=recall.enabled,
        )

    @cached_property
    def documents(self) -> DocumentService:
        """Projects of documents, searched by paragraph while they are being written."""
        from homing.documents.service import DocumentService

        return DocumentService(self.engine, hybrid=self.search_options, limits=self.file_limits)

    @property
    def file_limits(self) -> Limits:
        """What reading one file may take."""
        from homing.files import Limits

        files = self.settings.files
        return Limits(seconds=files.seconds, cpu_seconds=files.cpu_seconds, memory=files.memory)

    def knowledge(self, user: str | int | None = None) -> KnowledgeBase:
        """The knowledge base of one user; without a user, of whose app this is: `documents`, project `uploads`."""
        from homing.documents.records import Namespace
        from homing.documents.service import DocumentService
        from homing.knowledge import KnowledgeBase
        from homing.stores.arguments import checked_user

        name = checked_user(self.user if user is None else user)
        named, hybrid = self._shared or self, self.search_options
        apart = named.keeps_users_apart
        if name == self.user:
            return KnowledgeBase(
                name,
                store=self.store,
                embedder=self.models,
                options=hybrid,
                namespace=Namespace("" if self._entered is None else name),
                documents=lambda: self.documents,
                limits=self.file_limits,
            )

        def documents() -> DocumentService:
            return DocumentService(named.engine.for_user(name)) if apart else DocumentService(self.engine, owner=name)

        store = named.store if apart else self.store
        return KnowledgeBase(
            name, store=store, embedder=self.models, options=hybrid, documents=documents, limits=self.file_limits
        )

    @cached_property
    def _reader(self) -> OpenAILLM | OllamaLLM | None:
        """The chat model that reads sentences to the home, where the settings name one."""
        from homing.resolve import named_chat

        return named_chat(self.settings)

    @property
    def has_home(self) -> bool:
        """Whether a home may have been loaded; asking loads nothing of what understands sentences."""
        database = self.database
        return database.applied("devices") > 0 and bool(database.read(lambda tx: tx.rows("SELECT 1 FROM homes")))

    @cached_property
    def devices(self) -> SavedDevices:
        """The home that was loaded into this folder, and how it is asked."""
        from homing.devices.saved import SavedDevices

        return SavedDevices(
            self.database,
            user="" if self._entered is None else self.user,
            embedder=self.models.embedder_to_keep(),
            chat=self._reader,
            deadline=self.settings.devices.deadline,
            vector_deadline=self.settings.search.deadline,
        )

    @cached_property
    def skills(self) -> SkillService:
        """Folders with a SKILL.md, and the right one for a request."""
        from homing.skills.service import SkillService

        if self._shared is not None:
            return self._shared.skills
        return SkillService(lambda: self.engine, self.settings.data, deadline=self.settings.search.deadline)

    def folder(self, folder: str | Path) -> FollowedFolder:
        """The text files below a folder, as documents of a project that follows it."""
        from homing.documents.folders import FollowedFolder

        return FollowedFolder(Path(folder), documents=self.documents, engine=self.engine)

    def add(
        self,
        texts: Mapping[str, str],
        collection: str = DEFAULT_COLLECTION,
        *,
        metadata: Mapping[str, Metadata] | None = None,
    ) -> int:
        """Keep texts under their ids, each replacing what had its id, and embed them; returns how many were written.

        `metadata` is by id. When the model is down the texts are kept all the same and found by keywords; they are
        embedded when it is back.
        """
        metadata = metadata or {}
        count = self.engine.collection(collection).write(
            VectorRecord(key, collection, None, metadata.get(key, {}), text) for key, text in texts.items()
        )
        self.engine.embed_written()
        return count

    def search(
        self, query: str, collection: str = DEFAULT_COLLECTION, *, options: HybridOptions | None = None
    ) -> Retrieved:
        """The records of a collection that a query is about."""
        return search(query, collection, store=self.store, embedder=self.models, options=options or self.search_options)

    def close(self) -> None:
        """Embed what was remembered and still waits, and let go of the files. What was written is on disk already."""
        if (reader := self.__dict__.get("_reader")) is not None:
            reader.close()
        if "documents" in self.__dict__:
            self.documents.close()
        if self.__dict__.get("_entered") is not None:
            # The rest is another app's to close.
            return
        if "engine" in self.__dict__:
            self.engine.close()
        if "store" in self.__dict__:
            self.store.close()
        if self._shared is None and "models" in self.__dict__:
            self.models.close()
        if "_lazy_database" in self.__dict__:
            self._lazy_database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()
