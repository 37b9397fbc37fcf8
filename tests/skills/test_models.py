"""Seed 000, Embedding模型配置读取: which model a service uses, and what happens when that changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from homing.database.lazy import LazyDatabase
from homing.embedders.local import LocalProvider
from homing.models.choice import Models
from homing.models.manager import AdapterOptions
from homing.skills import Skill, ToolRetrievalService
from homing.testing.loopback import Fault, LoopbackApi
from tests.models.minilm import minilm_folder

pytestmark = pytest.mark.slow

SKILLS = [Skill("git-commit", "生成Git提交信息", body="正文。" * 200), Skill("file-read", "读取文件")]


@pytest.fixture
def models(tmp_path: Path) -> Iterator[Models]:
    options = AdapterOptions({"${KEY}": "sk-apiKey"}.__getitem__, tmp_path / "models", tmp_path / "cache.db")
    database = LazyDatabase(tmp_path / "homing.db")
    models = Models(database, options, named=LocalProvider, explicit=False)
    yield models
    models.close()
    database.close()


@pytest.fixture
def service(models: Models, tmp_path: Path) -> Iterator[ToolRetrievalService]:
    with ToolRetrievalService(tmp_path / "data", models=models) as service:
        yield service


@pytest.fixture
def minilm(tmp_path: Path) -> Path:
    return minilm_folder(tmp_path)


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi(key="sk-apiKey") as api:
        yield api


def add_remote(models: Models, api: LoopbackApi, width: int) -> int:
    models.config.create_provider("openai", "openai", api_key="${KEY}", base_url=api.url + "/v1")
    config = {"local": False, "apiEndpoint": "/embeddings", "dimensions": width, "timeout": 10000}
    return models.config.create_model("openai", "text-embedding-3-small", model_config=config).id


def widths(service: ToolRetrievalService) -> dict[str, set[int]]:
    """How wide the vectors are, by collection; 0 where a text has none."""
    store = service.engine.store
    return {
        info.name: {0 if one.embedding is None else len(one.embedding) for one in store.records(info.name)}
        for info in store.collections()
    }


def test_the_local_model_of_the_database_is_loaded_at_initialisation(
    service: ToolRetrievalService, models: Models, minilm: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Scenario: 读取本地Embedding模型配置"""
    models.config.create_provider("local", "local")
    config = {"local": True, "modelPath": str(minilm), "dimensions": 384, "quantized": True}
    models.config.create_model("local", "all-MiniLM-L6-v2", model_config=config, is_default=True)
    with caplog.at_level(logging.INFO):
        service.initialize()
    assert "Loaded local embedding model: all-MiniLM-L6-v2" in caplog.messages


def test_a_remote_model_of_the_database_is_asked_over_http(
    service: ToolRetrievalService, models: Models, api: LoopbackApi
) -> None:
    """Scenario: 读取外部API Embedding配置"""
    models.config.update_model(add_remote(models, api, 512), is_default=True)
    vector = service.get_embedding(SKILLS[0])
    assert vector is not None
    assert vector.shape == (512,)
    [request] = api.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == "Bearer sk-apiKey"


def test_without_a_configured_model_the_service_makes_the_default(
    service: ToolRetrievalService, models: Models
) -> None:
    """Scenario: Embedding模型配置不存在时的降级"""
    assert models.default_model() is None
    service.initialize()
    created = models.config.get_default_model("embedding")
    assert created is not None
    assert created.model_key.startswith("all-MiniLM-L6-v2")
    assert (created.is_default, created.enabled) == (True, True)
    service.index_skills(SKILLS)
    assert service.find_relevant_skills("帮我提交代码")[0].name == "git-commit"


def test_a_new_default_holds_from_the_next_call_and_the_old_vectors_answer_meanwhile(
    service: ToolRetrievalService, models: Models, api: LoopbackApi
) -> None:
    """Scenario: 运行时切换Embedding模型"""
    service.initialize()
    service.index_skills(SKILLS)
    before = service.get_embedding(SKILLS[0])
    models.config.update_model(add_remote(models, api, 64), is_default=True)
    after = service.get_embedding(SKILLS[0])
    assert before is not None
    assert after is not None
    assert (before.shape, after.shape) == ((384,), (64,))
    assert len(models.config.list_models("embedding")) == 2
    found = service.find_relevant_skills("帮我提交代码")
    assert (found[0].name, found.degraded) == ("git-commit", False)
    service.engine.flush()
    assert widths(service) == {"skills": {64}, "skills.passages": {64}}
    [vector] = [one.embedding for one in service.records() if one.id == "git-commit"]
    assert vector is not None
    assert np.allclose(vector, after, atol=1e-6)
    assert not service.find_relevant_skills("帮我提交代码").degraded


def test_a_new_default_that_does_not_answer_costs_nothing(
    service: ToolRetrievalService, models: Models, api: LoopbackApi
) -> None:
    service.initialize()
    service.index_skills(SKILLS)
    number = add_remote(models, api, 64)
    api.always = Fault(status=400)
    models.config.update_model(number, is_default=True)
    found = service.find_relevant_skills("帮我提交代码")
    assert (found[0].name, found.degraded) == ("git-commit", False)
    service.engine.flush()
    assert widths(service)["skills"] == {384}


def test_a_scan_brings_everything_to_the_new_default(
    service: ToolRetrievalService, models: Models, api: LoopbackApi, tmp_path: Path
) -> None:
    folder = tmp_path / "skills" / "git"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: git\ndescription: 生成Git提交信息\n---\n", encoding="utf-8")
    service.initialize()
    service.index_skill(SKILLS[1])
    service.scan(tmp_path / "skills")
    models.config.update_model(add_remote(models, api, 64), is_default=True)
    assert service.scan(tmp_path / "skills").counts["indexed"] == 1
    assert len(service.records()) == 2
    assert widths(service)["skills"] == {64}
    assert service.scan(tmp_path / "skills").counts["unchanged"] == 1


def test_the_model_is_loaded_once(service: ToolRetrievalService) -> None:
    """Scenario: 本地Embedding模型加载和缓存"""
    service.initialize()
    times = []
    for number in range(5):
        started = time.process_time()
        service.get_embedding(Skill("git", f"Git提交 {number}"))
        times.append(time.process_time() - started)
    assert sorted(times)[2] < 0.1
