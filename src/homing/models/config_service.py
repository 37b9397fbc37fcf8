"""Which providers and models there are, kept in SQLite."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from homing.database.sqlite import SqliteDatabase
from homing.database.sqlite.rows import rows
from homing.embedders.model_folder import BUNDLED, ModelFolder
from homing.embedders.secret import Secret
from homing.errors import InvalidArgument, NotFound
from homing.models.records import LOCAL, MODEL_TYPES, PROVIDER_TYPES, LLMModel, LLMProvider, ModelConfig
from homing.models.schema import COMPONENT, STEPS
from homing.models.snapshot import Snapshot, SnapshotCache

if TYPE_CHECKING:
    from apsw import Connection


class LLMConfigService:
    """Creates, reads, changes and deletes providers and models; safe from several threads and processes.

    Of each type exactly one model is the default as soon as there is one, whoever writes at the same time. Reads come
    from memory and see every change at once, also those of other processes. Raises InvalidArgument and NotFound, which
    say what to do, and StoreError.
    """

    def __init__(self, database: SqliteDatabase, *, clock: Callable[[], float] = time.monotonic) -> None:
        database.migrate(COMPONENT, STEPS)
        self._database = database
        self._cache = SnapshotCache(database, clock=clock)

    @staticmethod
    def exists_in(database: SqliteDatabase) -> bool:
        """Whether the file has these tables already; opening the service would make them."""
        with database.reading() as connection:
            return bool(rows(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'llm_models'"))

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
        """Add an account. `api_key` is kept as given: a key, or `${VARIABLE}`, which is read when it is used."""
        _check_name(name, "a provider's name")
        _check_known(type, PROVIDER_TYPES, "provider type")
        key = Secret(api_key)
        with self._changing() as connection:
            if rows(connection, "SELECT 1 FROM llm_providers WHERE name = ?", (name,)):
                raise InvalidArgument(f"there is a provider named {name!r} already; change that one, or choose a name")
            connection.execute(
                "INSERT INTO llm_providers(name, type, base_url, api_key, enabled) VALUES (?, ?, ?, ?, ?)",
                (name, type, base_url.strip(), key.reveal(), int(enabled)),
            )
            created = connection.last_insert_rowid()
        return self.get_provider(created)

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
            "api_key": None if api_key is None else Secret(api_key).reveal(),
            "base_url": None if base_url is None else base_url.strip(),
            "enabled": None if enabled is None else int(enabled),
        }
        with self._changing() as connection:
            if name is not None and rows(
                connection, "SELECT 1 FROM llm_providers WHERE name = ? AND id <> ?", (name, found.id)
            ):
                raise InvalidArgument(f"there is a provider named {name!r} already")
            _update(connection, "llm_providers", found.id, changes)
        return self.get_provider(found.id)

    def delete_provider(self, provider: int | str) -> None:
        """Remove an account. One that models belong to is refused, with their names."""
        found = self.get_provider(provider)
        with self._changing() as connection:
            used = rows(connection, "SELECT model_key FROM llm_models WHERE provider = ? ORDER BY id", (found.id,))
            if used:
                names = ", ".join(key for (key,) in used)
                raise InvalidArgument(
                    f"provider {found.name!r} is in use by {names}; remove these models first (`homing models remove`)",
                    details={"provider": found.name, "models": [key for (key,) in used]},
                )
            connection.execute("DELETE FROM llm_providers WHERE id = ?", (found.id,))

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
        with self._changing() as connection:
            if not rows(connection, "SELECT 1 FROM llm_providers WHERE id = ?", (owner.id,)):
                raise NotFound(f"provider {owner.name!r} was removed meanwhile; add it again")
            if rows(
                connection,
                "SELECT 1 FROM llm_models WHERE provider = ? AND model_key = ? AND model_type = ?",
                (owner.id, model_key, model_type),
            ):
                raise InvalidArgument(f"{owner.name} has a model {model_key!r} already; change that one")
            first = not rows(connection, "SELECT 1 FROM llm_models WHERE model_type = ? LIMIT 1", (model_type,))
            created = _insert_model(connection, owner.id, model_key, model_type, config, enabled)
            if is_default or (first and enabled):
                _make_default(connection, created, model_type)
        return self.get_model(created)

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
        with self._changing() as connection:
            [(default, able)] = rows(
                connection, "SELECT is_default, enabled FROM llm_models WHERE id = ?", (model,)
            ) or [(None, None)]
            if default is None:
                raise NotFound(f"model {found.model_key!r} was removed meanwhile")
            if (default or is_default) and not (able if enabled is None else enabled):
                raise InvalidArgument(f"{found.model_key} cannot be the default while it is disabled; choose another")
            if default and is_default is False:
                raise InvalidArgument(f"{found.model_key} is the default; make another model the default instead")
            if model_key is not None and rows(
                connection,
                "SELECT 1 FROM llm_models WHERE provider = ? AND model_key = ? AND model_type = ? AND id <> ?",
                (found.provider_id, model_key, found.model_type, model),
            ):
                raise InvalidArgument(f"there is a model {model_key!r} of this provider already")
            _update(connection, "llm_models", model, changes)
            if is_default:
                _make_default(connection, model, found.model_type)
        return self.get_model(model)

    def delete_model(self, model: int) -> None:
        """Remove a model. The default is refused while there are others: one of them has to take its place first."""
        found = self.get_model(model)
        with self._changing() as connection:
            others = rows(
                connection,
                "SELECT 1 FROM llm_models WHERE model_type = ? AND id <> ? AND enabled LIMIT 1",
                (found.model_type, model),
            )
            if others and rows(connection, "SELECT 1 FROM llm_models WHERE id = ? AND is_default", (model,)):
                raise InvalidArgument(
                    f"{found.model_key} is the default {found.model_type} model; make another the default first "
                    "(`homing models default`)"
                )
            connection.execute("DELETE FROM llm_models WHERE id = ?", (model,))

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
        with self._changing() as connection:
            # Somebody else may have been faster.
            if not rows(connection, "SELECT 1 FROM llm_models WHERE model_type = 'embedding' AND is_default"):
                connection.execute(
                    "INSERT INTO llm_providers(name, type, base_url, api_key, enabled) VALUES (?, ?, '', '', 1) "
                    "ON CONFLICT(name) DO NOTHING",
                    (LOCAL, LOCAL),
                )
                [(provider,)] = rows(connection, "SELECT id FROM llm_providers WHERE name = ?", (LOCAL,))
                config = ModelConfig(local=True, dimensions=bundled.dimensions, quantized=True)
                known = rows(
                    connection,
                    "SELECT id FROM llm_models WHERE provider = ? AND model_key = ? AND model_type = 'embedding'",
                    (provider, bundled.name),
                )
                created = (
                    known[0][0]
                    if known
                    else _insert_model(connection, provider, bundled.name, "embedding", config, True)
                )
                connection.execute("UPDATE llm_models SET enabled = 1 WHERE id = ?", (created,))
                _make_default(connection, created, "embedding")
        found = self.get_default_model("embedding")
        assert found is not None
        return found

    def _snapshot(self) -> Snapshot:
        return self._cache.get()

    @contextmanager
    def _changing(self) -> Iterator[Connection]:
        """A transaction that changes the configuration, for everybody who reads it."""
        with self._database.writing() as connection:
            yield connection
            connection.execute("UPDATE llm_revision SET number = number + 1")
        self._cache.invalidate()


def _insert_model(
    connection: Connection, provider: int, model_key: str, model_type: str, config: ModelConfig, enabled: bool
) -> int:
    connection.execute(
        "INSERT INTO llm_models(provider, model_key, model_type, config, is_default, enabled) "
        "VALUES (?, ?, ?, ?, 0, ?)",
        (provider, model_key, model_type, _json(config), int(enabled)),
    )
    return int(connection.last_insert_rowid())


def _make_default(connection: Connection, model: int, model_type: str) -> None:
    # One statement would do were the index not checked row by row.
    connection.execute("UPDATE llm_models SET is_default = 0 WHERE model_type = ? AND id <> ?", (model_type, model))
    connection.execute("UPDATE llm_models SET is_default = 1 WHERE id = ?", (model,))


def _update(connection: Connection, table: str, number: int, changes: Mapping[str, Any]) -> None:
    given = {column: value for column, value in changes.items() if value is not None}
    if given:
        columns = ", ".join(f"{column} = ?" for column in given)
        connection.execute(f"UPDATE {table} SET {columns} WHERE id = ?", (*given.values(), number))


def _json(config: ModelConfig) -> str:
    return config.model_dump_json(by_alias=True, exclude_defaults=True)


def _check_name(name: str, what: str) -> None:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InvalidArgument(f"{what} is a line of text with at least one character; got {name!r}")


def _check_known(name: str, known: frozenset[str], what: str) -> None:
    if name not in known:
        raise InvalidArgument(f"no {what} {name!r}; known: {', '.join(sorted(known))}")
