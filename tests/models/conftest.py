from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from homing.database import Database
from homing.models.config_service import LLMConfigService
from homing.models.manager import AdapterOptions, Adapters, LLMManager
from homing.testing.loopback import LoopbackApi
from tests.databases import database, open_database

__all__ = ["database", "open_database"]

KEY = "sk-loopback-4711"


@pytest.fixture
def service(database: Database) -> LLMConfigService:
    return LLMConfigService(database)


@pytest.fixture
def manager(service: LLMConfigService, tmp_path: Path) -> Iterator[LLMManager]:
    manager = LLMManager(service, Adapters(AdapterOptions(lambda value: value, tmp_path / "models")))
    yield manager
    manager.close()


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi(key=KEY) as api:
        yield api
