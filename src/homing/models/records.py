"""What is kept about a provider and about a model: the tables, and all of them in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from homing.database import Database, Transaction
from homing.database.database import Step
from homing.embedders.registry import PROVIDER_TYPE_TO_EMBEDDING_TYPE
from homing.errors import InvalidArgument
from homing.secret import Secret
from homing.vectors import Fit

LOCAL = "local"
"""The type of the provider whose models run in this process."""
PROVIDER_TYPES = frozenset({*PROVIDER_TYPE_TO_EMBEDDING_TYPE, LOCAL, "anthropic"})
MODEL_TYPES = frozenset({"embedding", "chat"})

COMPONENT = "models"

# The index is what makes "exactly one default" hold whoever writes; `revision` tells readers whether anything of this
# changed, in a database where most commits are about something else.
_FIRST = """
CREATE TABLE llm_providers(
    id IDENTITY, name TEXT NOT NULL UNIQUE, type TEXT NOT NULL, base_url TEXT NOT NULL, api_key TEXT NOT NULL,
    enabled INT64 NOT NULL
);
CREATE TABLE llm_models(
    id IDENTITY, provider INT64 NOT NULL, model_key TEXT NOT NULL, model_type TEXT NOT NULL, config TEXT NOT NULL,
    is_default INT64 NOT NULL, enabled INT64 NOT NULL,
    UNIQUE(provider, model_key, model_type)
);
CREATE UNIQUE INDEX llm_one_default ON llm_models(model_type) WHERE is_default = 1;
CREATE TABLE llm_revision(number INT64 NOT NULL);
INSERT INTO llm_revision VALUES (1);
CREATE TABLE model_switch(one INT64 PRIMARY KEY, previous INT64 NOT NULL);
"""
STEPS: tuple[Step, ...] = (_FIRST,)
"""Steps are only ever added: what was released is never edited."""
LIFETIME = 300.0
"""Seconds after which the configuration is read again, whatever happened."""


class FittedScale(BaseModel):
    """A `Scale` as it is kept."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    border: float
    steepness: float = Field(gt=0)
    fit: Fit | None = None


class ModelConfig(BaseModel):
    """How a model is reached. Fields may be given as `model_path` or as `modelPath`; unknown ones are refused.

    `local` models run in this process, from `model_path` or, without one, from the folder of pulled models or the
    package. The others are asked over HTTP at `api_endpoint`, where the provider's own is not right, with `timeout`
    milliseconds for a request. `scale` is what `homing models calibrate` fitted.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, protected_namespaces=()
    )

    local: bool = False
    model_path: str = ""
    api_endpoint: str = ""
    dimensions: int | None = Field(None, ge=1, le=65536)
    quantized: bool = False
    timeout: int | None = Field(None, ge=1, le=3_600_000)
    scale: FittedScale | None = None

    @classmethod
    def of(cls, given: ModelConfig | Mapping[str, Any] | None) -> ModelConfig:
        """A configuration from what a caller passes. Raises InvalidArgument naming the field."""
        if isinstance(given, ModelConfig):
            return given
        try:
            return cls.model_validate(dict(given or {}))
        except ValidationError as error:
            message = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            known = ", ".join(to_camel(name) for name in cls.model_fields)
            raise InvalidArgument(f"modelConfig is wrong: {message}; its fields are {known}") from None


@dataclass(frozen=True, slots=True)
class LLMProvider:
    """An account with a model provider. `api_key` is a key, or `${VARIABLE}`; it does not show itself."""

    id: int
    name: str
    type: str
    base_url: str = ""
    api_key: Secret = field(default_factory=Secret)
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class LLMModel:
    """A model of a provider; `(provider_id, model_key, model_type)` names it."""

    id: int
    provider_id: int
    model_key: str
    model_type: str
    model_config: ModelConfig
    is_default: bool = False
    enabled: bool = True


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
