from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from homing.database.sqlite import SqliteDatabase
from homing.models.adapters import Adapters, Surroundings
from homing.models.config_service import LLMConfigService
from homing.models.manager import LLMManager
from homing.testing.loopback import LoopbackApi

KEY = "sk-loopback-4711"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(tmp_path / "homing.db")
    yield database
    database.close()


@pytest.fixture
def service(database: SqliteDatabase) -> LLMConfigService:
    return LLMConfigService(database)


@pytest.fixture
def manager(service: LLMConfigService, tmp_path: Path) -> Iterator[LLMManager]:
    manager = LLMManager(service, Adapters(Surroundings(lambda value: value, tmp_path / "models")))
    yield manager
    manager.close()


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi(key=KEY) as api:
        yield api
