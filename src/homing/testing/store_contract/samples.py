"""Records and vectors to try a store with, and the fixtures every part of the contract uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from homing.errors import InvalidArgument
from homing.records import VectorRecord
from homing.stores.store import SearchOptions, Store
from homing.testing.processes import Processes
from homing.vectors import Vector

OpenStore = Callable[[], Store]

MODEL = "contract/model@8"
WIDTH = 8


def vector(*values: float) -> Vector:
    """A vector that begins with these values and is zero otherwise."""
    row = np.zeros(WIDTH, np.float32)
    row[: len(values)] = values
    return row


def record(
    name: str,
    *values: float,
    text: str = "",
    collection: str = "things",
    model: str = MODEL,
    keywords: str | None = None,
    **metadata: Any,
) -> VectorRecord:
    """A record; without values it has no vector."""
    embedding = vector(*values) if values else None
    return VectorRecord(name, collection, embedding, metadata, text, model if values else "", keywords)


def ids(found: Iterable[Any]) -> list[str]:
    """The ids of an answer, in its order."""
    return [one.id for one in found]


def only(**pairs: Any) -> SearchOptions:
    """A metadata filter."""
    return SearchOptions(pairs)


def refused(call: Callable[[], object], given: object) -> InvalidArgument:
    """The refusal of a call; fails, and names what was given, where it is not refused."""
    try:
        call()
    except InvalidArgument as error:
        return error
    pytest.fail(f"not refused: {given!r}")


class Opened(Processes):
    """A store under test: opened empty, closed afterwards.

    `rounds` is how often each of several writers writes; the more, the more of what happens at once is met.
    """

    rounds: ClassVar[int] = 12

    @pytest.fixture
    def store_url(self) -> str:
        """The URL of the data that `open_store` opens; for the parts that start processes."""
        raise NotImplementedError("override the fixture `store_url`")

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """A function that opens the store; called again it opens the same data."""
        raise NotImplementedError("override the fixture `open_store`")

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Iterator[Store]:
        """An empty store."""
        opened = open_store()
        yield opened
        opened.close()

    @pytest.fixture
    def other(self, store: Store, open_store: OpenStore) -> Iterator[Store]:
        """A second opening of the same data."""
        opened = open_store()
        yield opened
        opened.close()
