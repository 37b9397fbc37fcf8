"""Seed 000, the requirements about Skills; the scenario of each test is named in it. On the bundled model."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from homing.embedders.local import LocalProvider
from homing.errors import LanceSearchError
from homing.skills import Skill, ToolRetrievalService
from homing.stores.lance import Database, preload
from homing.stores.lance.database import Table
from homing.vectors import Vector

SEED_SKILLS = [
    Skill("git-commit", "生成Git提交信息"),
    Skill("file-read", "读取文件"),
    Skill("calculate", "数学计算"),
]


@pytest.fixture(autouse=True)
def a_process_that_has_started() -> None:
    preload().join()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ToolRetrievalService]:
    with ToolRetrievalService(tmp_path / "data") as service:
        yield service


@pytest.fixture
def seeded(service: ToolRetrievalService) -> ToolRetrievalService:
    service.index_skills(SEED_SKILLS)
    return service


def write_skill(root: Path, name: str, description: str, body: str = "") -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {name}\ndescription: {description}\n---\n{body}"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


def cpu_seconds(work: Callable[[], object]) -> float:
    """What the work takes on a machine that does nothing else."""
    started = time.process_time()
    work()
    return time.process_time() - started


def skills_table(tmp_path: Path) -> Table:
    """The table of the specification, as LanceDB has it."""
    table = Database(tmp_path / "data" / "skills.lance").table("skills")
    assert table is not None
    return table


def vectors_of(service: ToolRetrievalService) -> dict[str, Vector]:
    """The vectors of the skills by name."""
    return {one.metadata["name"]: one.embedding for one in service.records() if one.embedding is not None}


def test_the_first_initialisation_makes_the_table(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Scenario: 首次初始化"""
    service = ToolRetrievalService(tmp_path / "data")
    with caplog.at_level(logging.INFO):
        assert cpu_seconds(service.initialize) < 5.0
    assert "LanceDB initialized with skills table" in caplog.messages
    service.close()
    table = skills_table(tmp_path)
    assert table.schema.names == ["id", "name", "description", "tags", "vector", "metadata"]
    assert table.schema.field("vector").type.list_size == 384


def test_the_next_initialisation_opens_it_and_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Scenario: 重复初始化"""
    with ToolRetrievalService(tmp_path / "data") as first:
        first.index_skills(SEED_SKILLS)
        before = first.list_skills()
        version = skills_table(tmp_path).version
    second = ToolRetrievalService(tmp_path / "data")
    with caplog.at_level(logging.INFO):
        assert cpu_seconds(second.initialize) < 1.0
    assert "LanceDB initialized with skills table" not in caplog.messages
    assert second.list_skills() == before
    assert skills_table(tmp_path).version == version
    second.close()


def test_a_skill_becomes_a_vector_of_384_numbers(service: ToolRetrievalService) -> None:
    """Scenario: 生成Skills向量"""
    skill = Skill("git-commit", "自动分析Git改动并生成conventional commit信息", ("git", "commit", "versioning"))
    vector = service.get_embedding(skill)
    assert vector is not None
    assert vector.shape == (384,)
    assert np.all(vector != 0)
    again = service.get_embedding(skill)
    assert again is not None
    assert np.array_equal(vector, again)


def test_a_chinese_skill_becomes_a_vector_that_can_be_searched(service: ToolRetrievalService) -> None:
    """Scenario: 中文Skills向量生成"""
    described = Skill("excel", "读取Excel文件并提取数据分析")
    vector = service.get_embedding(described)
    near = service.get_embedding(Skill("excel", "分析Excel表格里的数据"))
    far = service.get_embedding(Skill("weather", "查询明天的天气预报"))
    assert vector is not None
    assert near is not None
    assert far is not None
    assert vector.shape == (384,)
    assert vector @ near > vector @ far


def test_a_new_skill_is_indexed_once_however_often(service: ToolRetrievalService) -> None:
    """Scenario: 索引新Skills"""
    skill = {
        "name": "file-read",
        "description": "读取文件内容",
        "tags": ["filesystem"],
        "path": "./data/skills/file-read",
    }
    service.index_skill(skill)
    service.index_skill(skill)
    [found] = service.list_skills()
    assert (found.name, found.description, found.tags) == ("file-read", "读取文件内容", ("filesystem",))
    stored = {key: found.metadata[key] for key in ("name", "description", "tags", "path")}
    assert stored == skill
    assert found.metadata["indexedAt"] > 1704067200000
    assert [record.embedding is not None for record in service.records()] == [True]


def test_an_updated_skill_overwrites_its_record(seeded: ToolRetrievalService) -> None:
    """Scenario: 更新已索引Skills"""
    before = vectors_of(seeded)
    seeded.update_skill(Skill("file-read", "把照片里的文字识别出来"))
    after = vectors_of(seeded)
    skills = {skill.name: skill for skill in seeded.list_skills()}
    assert len(skills) == len(after) == 3
    assert skills["file-read"].description == "把照片里的文字识别出来"
    assert not np.array_equal(before["file-read"], after["file-read"])


def test_the_skill_for_a_request_is_found(seeded: ToolRetrievalService) -> None:
    """Scenario: 检索相关Skills"""
    found = seeded.find_relevant_skills("帮我提交代码")
    scores = {hit.name: hit.score for hit in found}
    assert scores["git-commit"] > 0.75
    assert found[0].name == "git-commit"
    asked = [f"帮我提交代码 {number}" for number in range(15)]
    # What the work takes is the least that it was ever seen to take; the rest is the machine's.
    assert min(cpu_seconds(partial(seeded.find_relevant_skills, query)) for query in asked) < 0.020


def test_a_chinese_query_finds_a_chinese_skill(seeded: ToolRetrievalService) -> None:
    """Scenario: 中文查询检索"""
    seeded.index_skill(Skill("excel-analysis", "读取Excel分析数据"))
    found = seeded.find_relevant_skills("分析Excel文件")
    scores = {hit.name: hit.score for hit in found[:3]}
    assert scores["excel-analysis"] > 0.7


def test_at_most_limit_skills_come_back_in_order(service: ToolRetrievalService) -> None:
    """Scenario: 检索结果限制"""
    service.index_skills([Skill(f"tool-{number}", f"处理第{number}种文件") for number in range(9)])
    found = service.find_relevant_skills("处理文件", limit=5)
    scores = [hit.score for hit in found]
    assert len(found) == 5
    assert scores == sorted(scores, reverse=True)


def test_what_is_below_the_threshold_is_left_out(seeded: ToolRetrievalService) -> None:
    """Scenario: 相似度阈值过滤"""
    everything = seeded.find_relevant_skills("帮我提交代码")
    found = seeded.find_relevant_skills("帮我提交代码", threshold=0.6)
    assert 0 < len(found) < len(everything)
    assert [hit.name for hit in found] == [hit.name for hit in everything if hit.score >= 0.6]


def test_a_first_scan_indexes_and_leaves_a_marker(service: ToolRetrievalService, tmp_path: Path) -> None:
    """Scenario: 首次索引Skills"""
    folder = write_skill(tmp_path / "skills", "git-commit", "生成Git提交信息")
    report = service.scan(tmp_path / "skills")
    assert report.counts["indexed"] == 1
    marker = json.loads((folder / ".vectorized").read_text())
    assert marker["skillSize"] == os.path.getsize(folder / "SKILL.md")
    assert marker["indexedAt"] > 1704067200000
    assert isinstance(marker["skillHash"], str)
    assert service.find_relevant_skills("帮我提交代码")[0].path == str(folder)


def test_an_unchanged_skill_is_skipped(
    service: ToolRetrievalService, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Scenario: Skills内容未变更"""
    write_skill(tmp_path / "skills", "git-commit", "生成Git提交信息")
    service.scan(tmp_path / "skills")
    with caplog.at_level(logging.INFO):
        report = service.scan(tmp_path / "skills")
    assert "Skipping unchanged skill: git-commit" in caplog.messages
    assert (report.counts["indexed"], report.counts["unchanged"]) == (0, 1)


def test_a_changed_skill_is_indexed_again(service: ToolRetrievalService, tmp_path: Path) -> None:
    """Scenario: Skills描述变更"""
    folder = write_skill(tmp_path / "skills", "helper", "生成Git提交信息")
    service.scan(tmp_path / "skills")
    before = json.loads((folder / ".vectorized").read_text())
    write_skill(tmp_path / "skills", "helper", "查询天气预报")
    assert service.scan(tmp_path / "skills").counts["indexed"] == 1
    after = json.loads((folder / ".vectorized").read_text())
    assert after["skillHash"] != before["skillHash"]
    assert [skill.description for skill in service.list_skills()] == ["查询天气预报"]


def test_similarity_is_the_cosine(seeded: ToolRetrievalService) -> None:
    """Scenario: 相似度计算验证"""
    query = LocalProvider().embed(["数学计算"], kind="query")[0]
    by_name = vectors_of(seeded)
    near, far = float(query @ by_name["calculate"]), float(query @ by_name["git-commit"])
    assert near > 0.5
    assert abs(far) < 0.3
    assert float(near) == pytest.approx(next(h.cosine for h in seeded.find_relevant_skills("数学计算")), abs=1e-5)
    assert float(by_name["calculate"] @ by_name["calculate"]) == pytest.approx(1.0)


def test_a_lancedb_that_cannot_be_reached_is_an_error_with_its_code(tmp_path: Path) -> None:
    """Scenario: LanceDB连接失败"""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "skills.lance").write_text("not a database")
    with pytest.raises(LanceSearchError) as caught:
        ToolRetrievalService(tmp_path / "data").find_relevant_skills("帮我提交代码")
    assert caught.value.code == "LANCE_SEARCH_ERROR"
    assert "LanceDB connection failed" in str(caught.value)


def test_a_lancedb_that_goes_away_is_the_same_error(seeded: ToolRetrievalService, tmp_path: Path) -> None:
    """Scenario: LanceDB连接失败"""
    assert seeded.find_relevant_skills("帮我提交代码")
    shutil.rmtree(tmp_path / "data" / "skills.lance")
    with pytest.raises(LanceSearchError, match="LanceDB connection failed"):
        seeded.find_relevant_skills("帮我提交代码")


def test_without_a_model_keywords_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Scenario: 嵌入模型加载失败"""
    service = ToolRetrievalService(tmp_path / "data", embedder=LocalProvider(tmp_path / "no-such-model"))
    with caplog.at_level(logging.WARNING):
        assert service.get_embedding(SEED_SKILLS[0]) is None
    assert any("embedding model" in message for message in caplog.messages)
    service.index_skills(SEED_SKILLS)
    found = service.find_relevant_skills("提交代码")
    assert [hit.name for hit in found] == ["git-commit"]
    assert found.degraded
    assert found.mode == "keyword"
    assert [hit.name for hit in service.find_relevant_skills("file-read")] == ["file-read"]
    service.close()


def test_a_model_that_fails_later_costs_no_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Scenario: 嵌入模型加载失败"""
    with ToolRetrievalService(tmp_path / "data") as service:
        service.index_skills(SEED_SKILLS)
    broken = ToolRetrievalService(tmp_path / "data", embedder=LocalProvider(tmp_path / "no-such-model"))
    with caplog.at_level(logging.WARNING):
        found = broken.find_relevant_skills("生成提交信息")
    assert [hit.name for hit in found] == ["git-commit"]
    assert found.reason == "vector:MODEL_NOT_READY"
    assert any("keywords" in message for message in caplog.messages)
    broken.close()
    with ToolRetrievalService(tmp_path / "data") as service:
        assert not service.find_relevant_skills("生成提交信息").degraded
