"""Configurations that are compared differ in how they combine the legs: the legs themselves are asked once."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, cast

from homing.stores.store import Store

READS = frozenset({"search_vector", "search_words", "measure", "get"})


def asked_once(store: Store) -> Store:
    """The store, giving again what it has answered to the same question. Nothing may be written meanwhile."""
    return cast(Store, _AskedOnce(store))


class _AskedOnce:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._answers: dict[bytes, Any] = {}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        return self._once(name, method) if name in READS else method

    def _once(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def answer(*positional: Any, **named: Any) -> Any:
            key = pickle.dumps((name, positional, named))
            if key not in self._answers:
                self._answers[key] = method(*positional, **named)
            return self._answers[key]

        return answer
