"""A collection as the adapters of other frameworks see it: texts with metadata, kept and found by the engine."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

from homing.app import Homing, open_app
from homing.database import Database, Transaction
from homing.embedders.provider import EmbeddingProvider, Kind
from homing.engine.engine import Collection, Engine
from homing.engine.search import HybridOptions, search
from homing.errors import EmbeddingError, HomingError, InvalidArgument, MissingExtra, ModelMismatch, ProviderUnavailable
from homing.records import Hit, Match, Mode, Retrieved, VectorRecord
from homing.stores.arguments import checked_user
from homing.stores.filters import wanted
from homing.stores.registry import open_store
from homing.stores.store import MultiUserStore, SearchOptions, Store
from homing.vectors import Matrix, Scale, Vector, as_vector, normalise

Place = Homing | Store | str | Path | None
"""An open app, a store, the address of a store (`sqlite:///…`, `lance://…`, `postgresql://…`, a path ending in `.db`),
or a data folder; None is that of the user."""
Filter = Mapping[str, Any]
"""A tree of conditions on metadata, as `stores.filters` reads it."""


P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


def in_thread(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """A method as an asynchronous one: the same in a thread, whatever a subclass makes of it."""

    @wraps(method)
    async def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        found: T = await asyncio.to_thread(getattr(self, method.__name__), *args, **kwargs)
        return found

    return run


def missing(library: str, extra: str) -> MissingExtra:
    """What to say where the library of an adapter is not installed."""
    return MissingExtra(
        f"{library} is not installed; install it with: pip install 'homing[{extra}]'", details={"extra": extra}
    )


class OpenCollection:
    """One collection of a store: what is written is durable and found by words when a call returns, and by meaning
    as well unless the model is down; then it follows when the model is back.

    `close` lets go of what was opened for it, and leaves an app or a store that was given as it is.
    """

    def __init__(self, engine: Engine, name: str, options: HybridOptions, on_close: Callable[[], object]) -> None:
        self.engine = engine
        self.name = name
        self.user = engine.user
        self._options = options
        self.close = on_close

    @classmethod
    def open(
        cls, place: Place, name: str, embedder: EmbeddingProvider | None = None, *, embeds: bool = True
    ) -> OpenCollection:
        """A collection somewhere; without a place, in the data folder of the user.

        A folder has one model for all it holds, so an app that is open brings its own.

        Unless it `embeds`, texts have the vectors that they bring, and no others.
        """
        is_folder = isinstance(place, str | Path) and "://" not in str(place) and not str(place).endswith(".db")
        if place is None or (isinstance(place, str | Path) and is_folder):
            app = open_app(place, embedder=embedder)
            opened = cls.open(app, name, embeds=embeds)
            opened.close = app.close
            return opened
        if isinstance(place, Homing):
            if embedder is not None:
                raise InvalidArgument("an app has a model already; give it yours: homing.open(folder, embedder=…)")
            engine = place.engine if embeds else Engine(place.store, None, database=place.database, background=False)
            return cls(engine, name, place.search_options, _nothing)
        store = open_store(place) if isinstance(place, str | Path) else place
        if not isinstance(store, Store):
            raise InvalidArgument(
                "texts are kept in a data folder, at the address of a store, in a Store or in an app; "
                f"got {type(place).__name__}"
            )
        engine, closing = _engine(store, embedder)
        opened = cls(engine, name, HybridOptions(), lambda: _close(engine, closing, None if store is place else store))
        opened._embed_what_lacks_a_vector()
        return opened

    @property
    def store(self) -> Store:
        """Where the records are."""
        return self.engine.store

    @property
    def embedder(self) -> EmbeddingProvider:
        """What makes the vectors of this collection. Raises EmbeddingError where there is no model."""
        return self.engine.models.provider(self.store.model_of(self.name))

    def for_user(self, user: str | int) -> OpenCollection:
        """The same of one user, who sees and changes nothing of others.

        A store that keeps users apart by itself does so; elsewhere each has a collection of their own.
        """
        name = checked_user(user)
        if self.user:
            if self.user != name:
                raise InvalidArgument(f"this is the view of user {self.user!r}; ask the one it came from for {name!r}")
            return self
        if isinstance(self.store, MultiUserStore):
            return OpenCollection(self.engine.for_user(name), self.name, self._options, _nothing)
        own = OpenCollection(self.engine, f"{self.name}@{quote(name, safe='')}", self._options, _nothing)
        own.user = name
        return own

    def write(self, records: Iterable[tuple[str, str, Mapping[str, Any]]]) -> None:
        """Keep texts, given as id, text and metadata, each replacing what has its id, and embed them."""
        self.engine.collection(self.name).write(
            VectorRecord(one, self.name, None, metadata, text) for one, text, metadata in records
        )
        self.engine.embed_written()

    def put(self, records: Sequence[VectorRecord]) -> None:
        """Keep records as they are, with the vectors that some of them bring. All of one call or none."""
        self.check_vectors(records)
        self.store.write(records)

    def check_vectors(self, records: Sequence[VectorRecord]) -> None:
        """Refuse vectors that cannot be compared with those that are there, before anything is written."""
        models = {one.model for one in records if one.embedding is not None}
        served = self.store.model_of(self.name)
        if len(models | ({served} if served else set())) > 1:
            raise ModelMismatch(
                f"one collection, one model; {self.name!r} has vectors of {served or 'none'}, and these are of "
                f"{', '.join(sorted(models))}: take another collection, or embed everything again"
            )
        for one in records:
            if one.embedding is not None:
                as_vector(one.embedding)

    def change(self, work: Callable[[Transaction, Collection], int]) -> int:
        """Write what depends on what is there: nobody else writes here meanwhile. Returns what `work` does."""
        collection = self.engine.collection(self.name)
        count = self.engine.database.write(lambda transaction: work(transaction, collection), collection.scope)
        collection.notify()
        self.engine.embed_written()
        return count

    def delete(self, ids: Sequence[str]) -> int:
        """Remove texts; returns how many there were."""
        return self.engine.collection(self.name).delete(ids)

    def drop(self) -> int:
        """Remove everything; returns how many texts there were."""
        return self.engine.collection(self.name).drop()

    def get(self, ids: Sequence[str], *, embeddings: bool = False) -> list[VectorRecord]:
        """The records that exist, in the order asked for."""
        return self.store.get(self.name, ids, embeddings=embeddings)

    def ids(self, where: Filter | None = None) -> list[str]:
        """The ids of what passes a filter."""
        return self.store.ids(self.name, SearchOptions(where or {}))

    def search(
        self,
        query: str,
        limit: int,
        *,
        where: Filter | None = None,
        mode: Mode = "hybrid",
        vector: Sequence[float] | None = None,
    ) -> Retrieved:
        """What a query is about, the best first. `vector` is that of the query, where the caller has made it."""
        # A filter that is none is the caller's mistake, and no failure of the legs.
        wanted(SearchOptions(where or {}))
        options = replace(self._options, limit=limit, metadata_filter=where or {}, mode=mode)
        models = self.engine.models if vector is None else GivenVector(self.store.model_of(self.name), vector)
        return search(query, self.name, store=self.store, embedder=models, options=options)

    def nearest(self, vector: Sequence[float], limit: int, where: Filter | None = None) -> list[Match]:
        """The records whose vectors are nearest to one."""
        return self.store.search(self.name, as_vector(vector), limit, SearchOptions(where or {}))

    def _embed_what_lacks_a_vector(self) -> None:
        """A store without a database forgets with each process what was still to be embedded: so it is looked for."""
        if self.store.database is not None or not self.engine.models.embeds or not self.store.pending(self.name):
            return
        for _ in self.engine.collection(self.name).embed_missing():
            continue


def score_of_hit(hit: Hit) -> float:
    """How much a hit is about its query, from 0 to 1; what waits for its vector is judged by its words."""
    return min(1.0, max(0.0, hit.fused if hit.score is None else hit.score))


class ForeignModel:
    """The embeddings of another framework as an `EmbeddingProvider`.

    Its identity is what the framework calls it, and its width is known when it has embedded something. What it raises
    for a text (ValueError, TypeError) is that text's fault; anything else means that the model is away.
    """

    scale: Scale | None = None

    def __init__(
        self,
        name: str,
        embed_documents: Callable[[list[str]], Sequence[Sequence[float]]],
        embed_query: Callable[[str], Sequence[float]],
    ) -> None:
        self._name = name
        self._embed_documents = embed_documents
        self._embed_query = embed_query

    @cached_property
    def dimensions(self) -> int:
        """Width of every row; asking embeds a word."""
        return int(self.embed(["homing"]).shape[1])

    @property
    def id(self) -> str:
        """Identity of the vectors."""
        return f"{self._name}@{self.dimensions}"

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """One row per text."""
        if not texts:
            return normalise([[1.0] * self.dimensions])[:0]
        try:
            documents = kind == "document"
            rows = self._embed_documents(list(texts)) if documents else [self._embed_query(text) for text in texts]
        except HomingError:
            raise
        except (ValueError, TypeError) as error:
            raise EmbeddingError(f"{self._name} cannot embed this: {error}") from error
        except Exception as error:
            raise ProviderUnavailable(f"{self._name} does not answer: {error}") from error
        return normalise(rows)

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """Nobody knows."""
        return [False] * len(texts)


class GivenVector:
    """A model that has embedded the one query there is."""

    scale: Scale | None = None

    def __init__(self, identity: str, vector: Sequence[float]) -> None:
        self.id = identity
        self._vector: Vector = as_vector(vector)
        self.dimensions = len(self._vector)

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """That vector."""
        return normalise([self._vector] * len(texts))

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """Nobody knows."""
        return [False] * len(texts)


def _nothing() -> None:
    """What was given is not ours to close."""


def _engine(store: Store, embedder: EmbeddingProvider | None) -> tuple[Engine, Callable[[], object]]:
    """An engine over a store, and what lets go of the database that it needed beside it."""
    if store.database is not None:
        return Engine(store, embedder), _nothing
    from tempfile import TemporaryDirectory

    from homing.database.lazy import LazyDatabase

    folder = TemporaryDirectory(prefix="homing-")
    database: Database = LazyDatabase(Path(folder.name) / "work.db").open()

    def closing() -> None:
        database.close()
        folder.cleanup()

    engine = Engine(store, embedder, database=database)
    weakref.finalize(engine, closing)
    return engine, closing


def _close(engine: Engine, closing: Callable[[], object], store: Store | None) -> None:
    engine.close()
    closing()
    if store is not None:
        store.close()
