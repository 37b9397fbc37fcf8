"""Collections that were looked up a moment ago, so that not every search has to look them up."""

from __future__ import annotations

import time

from homing.stores.postgres.collection import Collection

SECONDS = 1.0
"""For which a collection need not be looked up again. Whether it is still the same is checked all the same."""
MOST = 1_000
"""Collections that are remembered."""


class Remembered:
    """The collections of a store and of the views of its users."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], tuple[float, Collection]] = {}

    def get(self, user: str, name: str) -> Collection | None:
        """The collection, if it was looked up a moment ago."""
        until, found = self._seen.get((user, name), (0.0, None))
        return found if time.monotonic() < until else None

    def keep(self, collection: Collection) -> None:
        """Remember a collection."""
        if len(self._seen) >= MOST:
            self._seen.clear()
        self._seen[collection.user, collection.name] = (time.monotonic() + SECONDS, collection)
