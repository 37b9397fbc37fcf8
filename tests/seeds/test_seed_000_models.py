"""Seed 000, Requirement Embedding模型配置读取: the scenarios about configuration and LLMManager, named in each test."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import homing
from homing.config import Settings
from homing.database.sqlite import SqliteDatabase
from homing.embedders.model_folder import BUNDLED, ModelFolder
from homing.errors import Timeout
from homing.models import LLMConfigService, LLMManager
from homing.models.manager import AdapterOptions, Adapters
from homing.testing.loopback import Fault, LoopbackApi
from tests.models.minilm import minilm_folder
from tests.models.statements import counted_statements

TEXT = "自动分析Git改动并生成conventional commit信息"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[LLMConfigService]:
    database = SqliteDatabase(tmp_path / "homing.db")
    yield LLMConfigService(database)
    database.close()


@pytest.fixture
def manager(service: LLMConfigService, tmp_path: Path) -> Iterator[LLMManager]:
    manager = LLMManager(service, Adapters(AdapterOptions({"${KEY}": "sk-apiKey"}.__getitem__, tmp_path)))
    yield manager
    manager.close()


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi(key="sk-apiKey") as api:
        yield api


@pytest.fixture
def minilm(tmp_path: Path) -> Path:
    return minilm_folder(tmp_path)


def test_a_local_model_is_read_from_sqlite_and_loaded(
    service: LLMConfigService, manager: LLMManager, minilm: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Scenario: 读取本地Embedding模型配置"""
    service.create_provider("local", "local")
    service.create_model(
        "local",
        "all-MiniLM-L6-v2",
        model_type="embedding",
        model_config={"local": True, "modelPath": str(minilm), "dimensions": 384, "quantized": True},
        is_default=True,
    )
    found = service.get_default_model("embedding")
    assert found is not None
    assert found.model_config.local
    with caplog.at_level(logging.INFO):
        assert manager.embed([TEXT]).shape == (1, 384)
    assert "Loaded local embedding model: all-MiniLM-L6-v2" in caplog.messages


def test_a_remote_model_is_read_from_sqlite_and_asked(
    service: LLMConfigService, manager: LLMManager, api: LoopbackApi
) -> None:
    """Scenario: 读取外部API Embedding配置"""
    service.create_provider("openai", "openai", api_key="${KEY}", base_url=api.url + "/v1/")
    service.create_model(
        "openai",
        "text-embedding-3-small",
        model_config={"local": False, "apiEndpoint": "/embeddings", "dimensions": 512, "timeout": 10000},
        is_default=True,
    )
    assert manager.generate_embedding(TEXT).shape == (512,)
    [request] = api.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == "Bearer sk-apiKey"
    assert request.body["dimensions"] == 512


def test_a_remote_model_answers_within_its_timeout_or_fails(
    service: LLMConfigService, manager: LLMManager, api: LoopbackApi
) -> None:
    """Scenario: 读取外部API Embedding配置"""
    service.create_provider("openai", "openai", api_key="${KEY}", base_url=api.url + "/v1")
    service.create_model("openai", "text-embedding-3-small", model_config={"timeout": 150})
    over = threading.Event()
    api.always = Fault(text=lambda answer: answer if over.wait(600) else "")
    started = time.process_time()
    with pytest.raises(Timeout):
        manager.generate_embedding(TEXT, kind="query")
    assert time.process_time() - started < 1.0
    assert not over.is_set(), "it failed although nobody answered"
    over.set()


def test_without_a_configured_model_a_default_is_made(service: LLMConfigService, manager: LLMManager) -> None:
    """Scenario: Embedding模型配置不存在时的降级"""
    assert service.get_default_model("embedding") is None
    created = service.ensure_default_embedding_model()
    assert [one.name for one in service.list_providers()] == ["local"]
    assert created.model_key.startswith("all-MiniLM-L6-v2")
    assert (created.is_default, created.enabled, created.model_config.local) == (True, True, True)
    assert service.ensure_default_embedding_model() == created
    assert manager.embed([TEXT]).shape == (1, 384)


def test_a_new_default_holds_from_the_next_call(
    service: LLMConfigService, manager: LLMManager, api: LoopbackApi
) -> None:
    """Scenario: 运行时切换Embedding模型"""
    model_a = service.ensure_default_embedding_model()
    assert manager.embed([TEXT]).shape == (1, 384)
    service.create_provider("openai", "openai", api_key="${KEY}", base_url=api.url + "/v1")
    model_b = service.create_model("openai", "text-embedding-3-small", model_config={"dimensions": 512})
    assert not model_b.is_default
    assert manager.embed([TEXT]).shape == (1, 384)
    service.update_model(model_b.id, is_default=True)
    assert manager.embed([TEXT]).shape == (1, 512)
    assert service.get_model(model_a.id).model_key == model_a.model_key


def test_an_open_app_follows_the_default_that_another_process_set(tmp_path: Path, api: LoopbackApi) -> None:
    """Scenario: 运行时切换Embedding模型"""
    with homing.open(tmp_path / "data", settings=Settings()) as app:
        assert app.embedder is not None
        assert app.embedder.dimensions == 384
        app.models.config.ensure_default_embedding_model()
        app.models.config.create_provider("openai", "openai", api_key="sk-apiKey", base_url=api.url + "/v1")
        # Another process makes the change.
        elsewhere = SqliteDatabase(tmp_path / "data" / "homing.db")
        other = LLMConfigService(elsewhere)
        other.update_model(
            other.create_model("openai", "text-embedding-3-small", model_config={"dimensions": 512}).id, is_default=True
        )
        elsewhere.close()
        assert app.embedder.id == "openai/text-embedding-3-small@512"
        assert app.embedder.embed([TEXT]).shape == (1, 512)


def test_embed_goes_through_registry_adapter_and_one_request(
    service: LLMConfigService, manager: LLMManager, api: LoopbackApi
) -> None:
    """Scenario: LLMManager embed()方法调用流程"""
    service.create_provider("openai", "openai", api_key="${KEY}", base_url=api.url + "/v1")
    service.create_model("openai", "text-embedding-3-small", model_config={"apiEndpoint": "/embeddings"})
    found = manager.model_registry.find_model("openai", "text-embedding-3-small")
    adapter = manager.get_or_create_adapter(found)
    started = time.process_time()
    rows = manager.embed([TEXT], provider="openai", model="text-embedding-3-small")
    assert time.process_time() - started < 1.0
    assert manager.get_or_create_adapter(found) is adapter
    [request] = api.requests
    assert (request.path, request.body["input"]) == ("/v1/embeddings", [TEXT])
    assert rows.shape == (1, 1536)


def test_a_local_model_is_loaded_once_and_kept(
    service: LLMConfigService, manager: LLMManager, minilm: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Scenario: 本地Embedding模型加载和缓存"""
    service.create_provider("local", "local")
    service.create_model("local", "all-MiniLM-L6-v2", model_config={"local": True, "modelPath": str(minilm)})
    with caplog.at_level(logging.INFO):
        first = manager.generate_local_embedding(["Git提交"], "all-MiniLM-L6-v2")
        started = time.process_time()
        second = manager.generate_local_embedding(["Git提交"], "all-MiniLM-L6-v2")
        elapsed = time.process_time() - started
    assert first.shape == (1, 384)
    np.testing.assert_array_equal(first, second)
    assert caplog.messages.count("Loaded local embedding model: all-MiniLM-L6-v2") == 1
    assert elapsed < 0.1


def test_a_local_model_that_nobody_configured_runs_from_the_package(manager: LLMManager) -> None:
    """Scenario: 本地Embedding模型加载和缓存"""
    assert manager.generate_local_embedding(["Git提交"], ModelFolder.read(BUNDLED).name).shape == (1, 384)


def test_a_hundred_skills_are_one_request(service: LLMConfigService, manager: LLMManager, api: LoopbackApi) -> None:
    """Scenario: 批量文本Embedding生成优化"""
    service.create_provider("openai", "openai", api_key="${KEY}", base_url=api.url + "/v1")
    service.create_model("openai", "text-embedding-3-small")
    skills = [f"技能 {number}: skill number {number}" for number in range(100)]
    rows = manager.embed(skills, provider="openai")
    [request] = api.requests
    assert request.body["input"] == skills
    assert request.body["model"] == "text-embedding-3-small"
    assert rows.shape == (100, 1536)


def test_configuration_is_read_once_and_again_after_five_minutes(tmp_path: Path) -> None:
    """Scenario: Embedding配置缓存（减少数据库查询）"""
    now = 0.0
    with counted_statements() as statements:
        database = SqliteDatabase(tmp_path / "homing.db")
        service = LLMConfigService(database, clock=lambda: now)
        manager = LLMManager(service, Adapters(AdapterOptions(str, tmp_path)))
        manager.embed([TEXT])
        manager.embed([TEXT])
        statements.clear()
        for _ in range(20):
            manager.embed([TEXT])
        assert statements == []
        started = time.thread_time()
        service.get_default_model("embedding")
        assert time.thread_time() - started < 0.001
        now = 300.0
        manager.embed([TEXT])
        assert statements
        manager.close()
        database.close()
