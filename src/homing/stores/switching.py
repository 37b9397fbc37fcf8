"""Two models in one collection for a while: how a store changes the model that answers without anybody noticing.

`stage` makes room for a second model's vectors, `add_vectors` fills it, and `activate` lets them answer, all at once.
Until then searches and writes go on with the first model's; afterwards its vectors are kept, so that going back costs
nothing either, until `discard` lets go of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from homing.errors import DimensionMismatch, InvalidArgument
from homing.records import VectorRecord
from homing.stores.store import Store


@dataclass(frozen=True, slots=True)
class SpaceInfo:
    """The vectors of one model in a collection: how many, and whether they are the ones that answer."""

    model: str
    dimensions: int
    embedded: int
    active: bool


@runtime_checkable
class SwitchesModels(Protocol):
    """What a `Store` can do beside. The promises of `Store` hold: durable, all or nothing, safe from everywhere.

    An upsert gives a record the vector of the model that answers, and no other; a delete takes all of its vectors. So
    what is written during a switch is `missing` from the second model until somebody embeds it. An unknown collection
    has no spaces, and nothing in it is missing.
    """

    def model_of(self, collection: str) -> str:
        """The identity of the model that answers; empty where nothing has a vector. Costs microseconds."""

    def spaces(self, collection: str) -> list[SpaceInfo]:
        """The models whose vectors are held, the one that answers first."""

    def stage(self, collection: str, model: str, dimensions: int) -> None:
        """Make room for the vectors of a model, and let go of others that do not answer.

        Those that are some record's only vectors stay. Staging the model that answers changes nothing.
        """

    def missing(self, collection: str, model: str) -> Iterator[VectorRecord]:
        """The records that have a vector, but none of this model; without their vectors, in no particular order."""

    def add_vectors(self, records: Iterable[VectorRecord]) -> int:
        """Give records that exist a vector of a model that was staged or answers; returns how many got one.

        Of a record only id, collection, text, embedding and model count. One that is gone, has another text by now or
        has such a vector already is passed over.
        """

    def activate(self, collection: str, model: str, *, complete: bool = True) -> int:
        """Let the vectors of a staged model answer from now on, and keep the others; returns how many are missing.

        Where some are missing and `complete` is asked for, nothing changes.
        """

    def discard(self, collection: str, model: str) -> int:
        """Let go of the vectors of a model that does not answer; returns how many there were.

        Refused with InvalidArgument where they are some record's only ones.
        """


@runtime_checkable
class SwitchingStore(Store, SwitchesModels, Protocol):
    """A store that can do both."""


def model_of(store: Store, collection: str) -> str:
    """The identity of the model that answers for a collection; empty where nothing has a vector."""
    if isinstance(store, SwitchesModels):
        return store.model_of(collection)
    return next((info.model for info in store.collections() if info.name == collection and info.embedded), "")


def check_width(model: str, dimensions: int, held: Iterable[int]) -> None:
    """Refuse to stage a model whose vectors are `held` with another width."""
    for width in held:
        if width != dimensions:
            raise DimensionMismatch(
                f"the vectors of {model!r} that are there have {width} dimensions, not {dimensions}; "
                "give the model an identity that says its width",
                details={"expected": width, "actual": dimensions},
            )


def not_staged(collection: str, what: str) -> InvalidArgument:
    """Vectors that there is no room for, or that cannot answer since there are none."""
    return InvalidArgument(f"collection {collection!r} has no room for vectors of {what}; stage the model first")


def still_answering(collection: str, model: str) -> InvalidArgument:
    """A model that cannot be let go of, since it is the one that answers."""
    return InvalidArgument(f"the vectors of {model!r} answer for collection {collection!r}; activate others first")


def only_vectors(collection: str, model: str, records: int) -> InvalidArgument:
    """A model that cannot be let go of, since so many records have no other vector."""
    return InvalidArgument(
        f"{records} records of collection {collection!r} have a vector of {model!r} and no other; embed them first"
    )
