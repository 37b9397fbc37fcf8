"""The seam between the engine and what holds the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from homing.database import Database, Transaction
from homing.records import Match, VectorRecord
from homing.vectors import Vector

MAX_LIMIT = 10_000
"""The most matches one search returns."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Narrows a search. Every pair must match.

    A value matches a record's metadata value that is equal to it, type included (`1` is not `"1"` and not `True`); a
    list in the metadata matches when one of its items does. A list as filter value means "any of these".

    `model` is the identity of what made the query vector. Where it is given and the collection is served by another
    one, the search raises ModelMismatch: vectors of two identities are never compared.
    """

    metadata_filter: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """What is in a collection: how many records, how many of them have a vector of the model that serves it."""

    name: str
    records: int
    embedded: int
    model: str
    dimensions: int


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The vectors of one model in a collection: how many, and whether they are the ones that are searched."""

    model: str
    dimensions: int
    embedded: int
    served: bool


@dataclass(frozen=True, slots=True)
class NewVector:
    """The vector of a text that was read a moment ago; `hash` is the text's (`records.text_hash`)."""

    id: str
    hash: str
    embedding: Vector


@dataclass(frozen=True, slots=True)
class Near:
    """A record that the vector leg found."""

    id: str
    cosine: float


@dataclass(frozen=True, slots=True)
class Worded:
    """A record that the keyword leg found, and its BM25, to which a term brings at most its idf."""

    id: str
    bm25: float


@dataclass(frozen=True, slots=True)
class Words:
    """What the keyword leg found, the best first, and what the words of the query are worth in this collection.

    `mass` is the sum of the idf of the query's terms, unknown ones included; `rarest` is the idf of a word that a
    single text holds. Both are in the units of `bm25`, so that their ratios mean the same in every engine. `texts` is
    how many texts the collection has.
    """

    found: tuple[Worded, ...] = ()
    mass: float = 0.0
    rarest: float = 1.0
    texts: int = 0
    corrected: Mapping[str, str] = field(default_factory=dict)
    """Words of the query that no text holds, and the spelling of others that they were read as."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A record as both legs see it: None where it has no vector of the model, 0.0 where it holds no word."""

    id: str
    cosine: float | None
    bm25: float


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What making the derived indexes anew did: how many texts, and how many vectors could not be trusted and went."""

    texts: int
    vectors_removed: int


@runtime_checkable
class VectorStore(Protocol):
    """The store of specification 001: records in, the nearest out."""

    def upsert(self, records: Iterable[VectorRecord]) -> int:
        """Write records, each replacing the one with its `(collection, id)`; returns how many were written."""

    def search(
        self, collection: str, vector: Vector, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        """The nearest records, by `distance` ascending, then id; `limit` of them if so many exist."""

    def search_text(
        self, collection: str, query: str, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        """The records that share tokens with the query, by relevance descending and then id. The query is data."""

    def delete(self, collection: str, ids: Sequence[str]) -> int:
        """Remove records everywhere; returns how many there were."""


@runtime_checkable
class Store(VectorStore, Protocol):
    """Keeps records and finds them again, by vector and by words.

    Safe to call from several threads, and for engines on disk from several processes. A call that returns is durable; a
    call that raises has changed nothing, or says that the outcome is unknown. An unknown collection has no matches: it
    is not an error. Raises only StoreError and InvalidArgument.
    """

    @property
    def database(self) -> Database | None:
        """The database that the records live in, whose transactions `write` and `delete` can join; None where there is
        none, as with LanceDB."""

    def write(self, records: Iterable[VectorRecord], transaction: Transaction | None = None) -> int:
        """Write records, each replacing the one with its `(collection, id)`; returns how many were written.

        Found by words at once. All of one call or none; with a transaction, all of that or none. Of records with one
        key the last wins. A record without a vector has none afterwards, unless one with the same text was there: that
        keeps the vectors of its text. A vector makes its model the one that serves a collection without vectors; where
        another model serves it, it is refused with ModelMismatch.
        """

    def delete(self, collection: str, ids: Sequence[str], transaction: Transaction | None = None) -> int:
        """Remove records with words and vectors; returns how many there were."""

    def drop(self, collection: str) -> int:
        """Remove a collection with all of its records; returns how many there were."""

    def get(self, collection: str, ids: Sequence[str], *, embeddings: bool = True) -> list[VectorRecord]:
        """The records that exist, in the order asked for, with the vectors of the model that serves the collection.

        Without `embeddings` the vectors are not read.
        """

    def texts(self, collection: str, ids: Sequence[str], *, lacking: str = "") -> dict[str, str]:
        """The texts of the records that exist, by id; with `lacking`, of those without a vector of that model."""

    def ids(self, collection: str, options: SearchOptions | None = None) -> list[str]:
        """The ids of every record of a collection that passes a filter, in the order of `records`, without reading
        the records."""

    def records(self, collection: str) -> Iterator[VectorRecord]:
        """Every record of a collection, by id."""

    def collections(self) -> list[CollectionInfo]:
        """What is in the store, by name."""

    def search_vector(
        self, collection: str, vector: Vector, limit: int, options: SearchOptions | None = None
    ) -> list[Near]:
        """The nearest records by the vectors of the model that serves the collection; ties by id."""

    def search_words(self, collection: str, query: str, limit: int, options: SearchOptions | None = None) -> Words:
        """The records that share words with the query; ties by id. The query is data."""

    def measure(
        self, collection: str, ids: Sequence[str], *, vector: Vector | None = None, query: str = ""
    ) -> list[Measured]:
        """What the legs would say of these records, of which one leg found some and the other did not.

        In the order asked for, without those that are gone. `vector` is one of the model that serves the collection.
        """

    def put_vectors(self, collection: str, model: str, vectors: Sequence[NewVector]) -> set[str]:
        """Give records a vector of a model, where the text is still the one that was embedded; returns whose got one.

        One that is gone or has another text by now is passed over. The first vectors of a collection make their model
        the one that serves it; those of any other are held beside them until `serve`.
        """

    def models(self, collection: str) -> list[ModelInfo]:
        """The models whose vectors are held, the one that serves the collection first."""

    def model_of(self, collection: str) -> str:
        """The identity of the model that serves a collection; empty where nothing has a vector. Costs microseconds."""

    def pending(self, collection: str) -> int:
        """How many records have no vector of the model that serves the collection. Costs microseconds."""

    def missing(self, collection: str, model: str, *, after: str = "", limit: int = 1_000) -> list[str]:
        """Ids of records that have no vector of this model, in their order, from the one after `after` on."""

    def serve(self, collection: str, model: str, transaction: Transaction | None = None) -> None:
        """Search the vectors of this model from now on, all at once. The others are kept."""

    def discard(self, collection: str, model: str) -> int:
        """Let go of the vectors of a model that does not serve the collection; returns how many there were."""

    def check(self) -> list[str]:
        """What is wrong inside the store, a sentence each; nothing where texts, words and vectors agree."""

    def rebuild(self) -> Rebuilt:
        """Make anew what is derived: the words of every text that is whole, counts, and the indexes of the engine.

        Vectors that cannot be trusted (of another text, of no text, not of length one) are removed: `missing` names
        their texts. A text that is damaged itself stays as it is, and `check` names it. Others may read and write
        meanwhile; some of them wait.
        """

    def close(self) -> None:
        """Let go of the engine. A closed store refuses every other call."""


def missing_pages(store: Store, collection: str, model: str, size: int = 1_000) -> Iterator[list[str]]:
    """The ids of all records that have no vector of a model, a page at a time; without a model, of all records."""
    after = ""
    # Of a model that nobody has all are missing.
    while page := store.missing(collection, model or "none", after=after, limit=size):
        yield page
        after = page[-1]


@runtime_checkable
class TellsSizes(Protocol):
    """A store that can say how much room its parts take; beside `Store`, because not every engine knows."""

    def sizes(self) -> Mapping[str, int]:
        """Bytes by what they hold."""


@runtime_checkable
class LoadsInBulk(Protocol):
    """A store in which it pays to say that many rows are about to come; beside `Store`, because in most it does not."""

    def loading(self) -> AbstractContextManager[None]:
        """Inside, no index is begun that would make each further row dear; those that are due are built at the end."""


@runtime_checkable
class MultiUserStore(Protocol):
    """A store with a view for each of its users, which reaches nothing else; `user_id` is empty on the whole store."""

    user_id: str

    def for_user(self, user_id: str | int) -> Store:
        """The store of one user."""
