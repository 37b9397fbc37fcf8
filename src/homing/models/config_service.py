"""Which providers and models there are, kept as rows of a database."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from homing.database import Database, Transaction
from homing.database.database import T, Work
from homing.embedders.model_folder import BUNDLED, ModelFolder
from homing.errors import InvalidArgument, NotFound
from homing.models.records import (
    COMPONENT,
    LOCAL,
    MODEL_TYPES,
    PROVIDER_TYPES,
    STEPS,
    LLMModel,
    LLMProvider,
    ModelConfig,
    Snapshot,
    SnapshotCache,
)
from homing.secret import Secret


class LLMConfigService:
    """Creates, reads, changes and deletes providers and models; safe from several threads and processes.

    Of each type exactly one model is the default as soon as there is one, whoever writes at the same time. Reads come
    from memory and see every change at once, also those of other processes. Raises InvalidArgument and NotFound, which
    say what to do, and StoreError.
    """

    def __init__(
        self,
        database: Database,
        *,
        keep_key: Callable[[str], str] = str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keep_key = keep_key
        database.migrate(COMPONENT, STEPS)
        self._database = database
        self._cache = SnapshotCache(database, clock=clock)

    @staticmethod
    def exists_in(database: Database) -> bool:
        """Whether the database has these tables already; opening the service would make them."""
        return database.applied(COMPONENT) > 0

    # Providers

    def create_provider(
        self,
        name: str,
        type: str,  # noqa: A002 - the word of the specification
        *,
        api_key: str | Secret = "",
        base_url: str = "",
        enabled: bool = True,
    ) -> LLMProvider:
        """Add an account. `api_key` is a key, of which only a reference is kept here, or `${VARIABLE}` (see `Keys`)."""
        _check_name(name, "a provider's name")
        _check_known(type, PROVIDER_TYPES, "provider type")
        key = Secret(self._keep_key(Secret(api_key).reveal()))

        def work(tx: Transaction) -> int:
            if tx.rows("SELECT 1 FROM llm_providers WHERE name = $1", name):
                raise InvalidArgument(f"there is a provider named {name!r} already; change that one, or choose a name")
            [(created,)] = tx.rows(
                "INSERT INTO llm_providers(name, type, base_url, api_key, enabled) VALUES ($1, $2, $3, $4, $5) "
                "RETURNING id",
                *(name, type, base_url.strip(), key.reveal(), int(enabled)),
            )
            return int(created)

        return self.get_provider(self._change(work))

    def get_provider(self, provider: int | str) -> LLMProvider:
        """The provider with that id or name."""
        providers = self._snapshot().providers
        found = next((one for one in providers.values() if provider in (one.id, one.name)), None)
        if found is None:
            known = ", ".join(one.name for one in providers.values()) or "none yet"
            raise NotFound(f"no provider {provider!r}; there are: {known}. Add one with `homing providers add`")
        return found

    def list_providers(self) -> list[LLMProvider]:
        """All of them, the oldest first."""
        return list(self._snapshot().providers.values())

    def update_provider(
        self,
        provider: int | str,
        *,
        name: str | None = None,
        api_key: str | Secret | None = None,
        base_url: str | None = None,
        enabled: bool | None = None,
    ) -> LLMProvider:
        """Change what is given; what is None stays."""
        found = self.get_provider(provider)
        if name is not None:
            _check_name(name, "a provider's name")
        changes = {
            "name": name,
            "api_key": None if api_key is None else self._keep_key(Secret(api_key).reveal()),
            "base_url": None if base_url is None else base_url.strip(),
            "enabled": None if enabled is None else int(enabled),
        }

        def work(tx: Transaction) -> None:
            if name is not None and tx.rows("SELECT 1 FROM llm_providers WHERE name = $1 AND id <> $2", name, found.id):
                raise InvalidArgument(f"there is a provider named {name!r} already")
            _update(tx, "llm_providers", found.id, changes)

        self._change(work)
        return self.get_provider(found.id)

    def delete_provider(self, provider: int | str) -> None:
        """Remove an account. One that models belong to is refused, with their names."""
        found = self.get_provider(provider)

        def work(tx: Transaction) -> None:
            used = tx.rows("SELECT model_key FROM llm_models WHERE provider = $1 ORDER BY id", found.id)
            if used:
                names = ", ".join(key for (key,) in used)
                raise InvalidArgument(
                    f"provider {found.name!r} is in use by {names}; remove these models first (`homing models remove`)",
                    details={"provider": found.name, "models": [key for (key,) in used]},
                )
            tx.rows("DELETE FROM llm_providers WHERE id = $1", found.id)

        self._change(work)

    # Models

    def create_model(
        self,
        provider: int | str,
        model_key: str,
        *,
        model_type: str = "embedding",
        model_config: ModelConfig | Mapping[str, Any] | None = None,
        is_default: bool = False,
        enabled: bool = True,
    ) -> LLMModel:
        """Add a model of a provider. The first of its type becomes the default."""
        _check_name(model_key, "a model's key")
        _check_known(model_type, MODEL_TYPES, "model type")
        config, owner = ModelConfig.of(model_config), self.get_provider(provider)
        if is_default and not enabled:
            raise InvalidArgument(f"{model_key} cannot be the default while it is disabled; enable it")

        def work(tx: Transaction) -> int:
            if not tx.rows("SELECT 1 FROM llm_providers WHERE id = $1", owner.id):
                raise NotFound(f"provider {owner.name!r} was removed meanwhile; add it again")
            if _models_named(tx, owner.id, model_key, model_type):
                raise InvalidArgument(f"{owner.name} has a model {model_key!r} already; change that one")
            first = not tx.rows("SELECT 1 FROM llm_models WHERE model_type = $1 LIMIT 1", model_type)
            created = _insert_model(tx, owner.id, model_key, model_type, config, enabled)
            if is_default or (first and enabled):
                _make_default(tx, created, model_type)
            return created

        return self.get_model(self._change(work))

    def get_model(self, model: int) -> LLMModel:
        """The model with that id."""
        found = self._snapshot().models.get(model)
        if found is None:
            raise NotFound(f"no model with id {model}; see `homing models list`")
        return found

    def list_models(self, model_type: str | None = None) -> list[LLMModel]:
        """All of them, or those of one type; the oldest first."""
        return [one for one in self._snapshot().models.values() if model_type in (None, one.model_type)]

    def update_model(
        self,
        model: int,
        *,
        model_key: str | None = None,
        model_config: ModelConfig | Mapping[str, Any] | None = None,
        is_default: bool | None = None,
        enabled: bool | None = None,
    ) -> LLMModel:
        """Change what is given; what is None stays. A new default takes the place of the old one, which is kept."""
        found = self.get_model(model)
        if model_key is not None:
            _check_name(model_key, "a model's key")
        changes = {
            "model_key": model_key,
            "config": None if model_config is None else _json(ModelConfig.of(model_config)),
            "enabled": None if enabled is None else int(enabled),
        }

        def work(tx: Transaction) -> None:
            now = tx.rows("SELECT is_default, enabled FROM llm_models WHERE id = $1", model)
            if not now:
                raise NotFound(f"model {found.model_key!r} was removed meanwhile")
            default, able = now[0]
            if (default or is_default) and not (able if enabled is None else enabled):
                raise InvalidArgument(f"{found.model_key} cannot be the default while it is disabled; choose another")
            if default and is_default is False:
                raise InvalidArgument(f"{found.model_key} is the default; make another model the default instead")
            if model_key is not None and _models_named(tx, found.provider_id, model_key, found.model_type) - {model}:
                raise InvalidArgument(f"there is a model {model_key!r} of this provider already")
            _update(tx, "llm_models", model, changes)
            if is_default:
                _make_default(tx, model, found.model_type)

        self._change(work)
        return self.get_model(model)

    def delete_model(self, model: int) -> None:
        """Remove a model. The default is refused while there are others: one of them has to take its place first."""
        found = self.get_model(model)

        def work(tx: Transaction) -> None:
            others = tx.rows(
                "SELECT 1 FROM llm_models WHERE model_type = $1 AND id <> $2 AND enabled = 1 LIMIT 1",
                *(found.model_type, model),
            )
            if others and tx.rows("SELECT 1 FROM llm_models WHERE id = $1 AND is_default = 1", model):
                raise InvalidArgument(
                    f"{found.model_key} is the default {found.model_type} model; make another the default first "
                    "(`homing models default`)"
                )
            tx.rows("DELETE FROM llm_models WHERE id = $1", model)

        self._change(work)

    def get_default_model(self, model_type: str) -> LLMModel | None:
        """The default model of a type; None where there is none of that type."""
        _check_known(model_type, MODEL_TYPES, "model type")
        return self._snapshot().default(model_type)

    def ensure_default_embedding_model(self) -> LLMModel:
        """The default embedding model; where there is none, the one inside the package is made it."""
        found = self.get_default_model("embedding")
        if found is not None:
            return found
        bundled = ModelFolder.read(BUNDLED)

        def work(tx: Transaction) -> None:
            # Somebody else may have been faster.
            if tx.rows("SELECT 1 FROM llm_models WHERE model_type = 'embedding' AND is_default = 1"):
                return
            tx.rows(
                "INSERT INTO llm_providers(name, type, base_url, api_key, enabled) VALUES ($1, $2, '', '', 1) "
                "ON CONFLICT(name) DO NOTHING",
                *(LOCAL, LOCAL),
            )
            [(provider,)] = tx.rows("SELECT id FROM llm_providers WHERE name = $1", LOCAL)
            config = ModelConfig(local=True, dimensions=bundled.dimensions, quantized=True)
            known = _models_named(tx, provider, bundled.name, "embedding")
            chosen = known.pop() if known else _insert_model(tx, provider, bundled.name, "embedding", config, True)
            tx.rows("UPDATE llm_models SET enabled = 1 WHERE id = $1", chosen)
            _make_default(tx, chosen, "embedding")

        self._change(work)
        found = self.get_default_model("embedding")
        assert found is not None
        return found

    def _snapshot(self) -> Snapshot:
        return self._cache.get()

    def _change(self, work: Work[T]) -> T:
        """What the work answers; it changes the configuration, for everybody who reads it."""

        def change(tx: Transaction) -> T:
            tx.rows("UPDATE llm_revision SET number = number + 1")
            return work(tx)

        answered = self._database.write(change, scope=COMPONENT)
        self._cache.invalidate()
        return answered


def _models_named(tx: Transaction, provider: int, model_key: str, model_type: str) -> set[int]:
    """The ids of a provider's models of that key and type: one or none."""
    found = tx.rows(
        "SELECT id FROM llm_models WHERE provider = $1 AND model_key = $2 AND model_type = $3",
        *(provider, model_key, model_type),
    )
    return {number for (number,) in found}


def _insert_model(
    tx: Transaction, provider: int, model_key: str, model_type: str, config: ModelConfig, enabled: bool
) -> int:
    [(created,)] = tx.rows(
        "INSERT INTO llm_models(provider, model_key, model_type, config, is_default, enabled) "
        "VALUES ($1, $2, $3, $4, 0, $5) RETURNING id",
        *(provider, model_key, model_type, _json(config), int(enabled)),
    )
    return int(created)


def _make_default(tx: Transaction, model: int, model_type: str) -> None:
    # One statement would do were the index not checked row by row.
    tx.rows("UPDATE llm_models SET is_default = 0 WHERE model_type = $1 AND id <> $2", model_type, model)
    tx.rows("UPDATE llm_models SET is_default = 1 WHERE id = $1", model)


def _update(tx: Transaction, table: str, number: int, changes: Mapping[str, Any]) -> None:
    given = {column: value for column, value in changes.items() if value is not None}
    if given:
        columns = ", ".join(f"{column} = ${at}" for at, column in enumerate(given, start=1))
        tx.rows(f"UPDATE {table} SET {columns} WHERE id = ${len(given) + 1}", *given.values(), number)


def _json(config: ModelConfig) -> str:
    return config.model_dump_json(by_alias=True, exclude_defaults=True)


def _check_name(name: str, what: str) -> None:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InvalidArgument(f"{what} is a line of text with at least one character; got {name!r}")


def _check_known(name: str, known: frozenset[str], what: str) -> None:
    if name not in known:
        raise InvalidArgument(f"no {what} {name!r}; known: {', '.join(sorted(known))}")
