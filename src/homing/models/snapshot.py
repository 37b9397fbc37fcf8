"""All providers and models in memory, read again only when they may have changed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from homing.database import Database, Transaction
from homing.embedders.secret import Secret
from homing.models.records import LLMModel, LLMProvider, ModelConfig

LIFETIME = 300.0
"""Seconds after which the configuration is read again, whatever happened."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every provider and every model at one moment, by id."""

    providers: Mapping[int, LLMProvider]
    models: Mapping[int, LLMModel]
    revision: int

    def default(self, model_type: str) -> LLMModel | None:
        """The default model of a type."""
        return next((one for one in self.models.values() if one.is_default and one.model_type == model_type), None)


class SnapshotCache:
    """The latest snapshot.

    It is read again when somebody in this process called `invalidate`, when another connection or process committed a
    change of it, and after five minutes. Asking in between costs no query, only the version of the database.
    """

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._held: Snapshot | None = None
        self._seen = -1
        self._until = 0.0

    def get(self) -> Snapshot:
        """The configuration as it is now."""
        with self._lock:
            # Before reading: a commit that comes between the two is then noticed the next time.
            seen, now = self._database.version(), self._clock()
            held = self._held
            if held is None or now >= self._until:
                held = self._database.read(_snapshot)
                self._until = now + LIFETIME
            elif seen != self._seen and self._database.read(_revision) != held.revision:
                held = self._database.read(_snapshot)
            self._held, self._seen = held, seen
            return held

    def invalidate(self) -> None:
        """Forget what is held: the next `get` reads."""
        with self._lock:
            self._held = None


def _revision(tx: Transaction) -> int:
    [(number,)] = tx.rows("SELECT number FROM llm_revision")
    return int(number)


def _snapshot(tx: Transaction) -> Snapshot:
    providers = [
        LLMProvider(number, name, kind, base_url, Secret(key), bool(enabled))
        for number, name, kind, base_url, key, enabled in tx.rows(
            "SELECT id, name, type, base_url, api_key, enabled FROM llm_providers ORDER BY id"
        )
    ]
    models = [
        LLMModel(number, provider, key, kind, ModelConfig.model_validate_json(config), bool(default), bool(enabled))
        for number, provider, key, kind, config, default, enabled in tx.rows(
            "SELECT id, provider, model_key, model_type, config, is_default, enabled FROM llm_models ORDER BY id"
        )
    ]
    return Snapshot({one.id: one for one in providers}, {one.id: one for one in models}, _revision(tx))
