"""Sets, models and configurations side by side; floors; results that are kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from homing.errors import InvalidArgument, NotFound, StoreCorrupt
from homing.evaluation.compare import Demand, compare
from homing.evaluation.golden import GoldenSet, Question
from homing.evaluation.result import Evaluation, list_results, read_result, save_result
from homing.evaluation.run import Configuration
from homing.testing.fake import FakeEmbedder

GOLDEN = GoldenSet(
    "tiny",
    {"git": "生成Git提交信息 commit", "file": "读取文件 file", "calc": "数学计算 sum"},
    (
        Question("1", "提交", {"git": 1}),
        Question("2", "read file", {"file": 1}),
        Question("3", "天气", {}),
        Question("4", "把 file 打开", {"file": 1, "lost": 1}),
    ),
)
CONFIGURATIONS = [Configuration(1, 0), Configuration(0, 1), Configuration(), Configuration(0.5, 0.5, 10)]


@pytest.fixture(scope="module")
def result() -> Evaluation:
    demands = [Demand.parse("recall_1=0.5"), Demand.parse("zh:mrr=1.5"), Demand.parse("abstained=0")]
    return compare([GOLDEN], [FakeEmbedder(64), FakeEmbedder(128)], CONFIGURATIONS, demands=demands)


def test_every_model_and_configuration_has_its_row_for_every_language(result: Evaluation) -> None:
    assert len(result.models) == 2
    keys = {(row.model, row.configuration, row.language) for row in result.rows}
    assert len(keys) == len(result.rows) == 2 * 4 * 4
    assert {row.language for row in result.rows} == {"all", "zh", "en", "mixed"}
    assert {row.mode for row in result.rows} == {"semantic", "keyword", "hybrid"}


def test_a_set_is_described_with_what_nobody_can_find(result: Evaluation) -> None:
    [described] = result.sets
    assert (described.documents, described.questions, described.unanswerable, described.missing) == (3, 4, 1, 1)
    assert described.languages == {"zh": 2, "en": 1, "mixed": 1}


def test_latency_is_told_for_every_model_and_mode(result: Evaluation) -> None:
    assert len({(one.model, one.mode) for one in result.latency}) == 6


def test_the_best_configuration_has_the_highest_ndcg(result: Evaluation) -> None:
    [best] = result.best
    assert best.ndcg_10 == max(row.ndcg_10 for row in result.rows if row.language == "all")


def test_floors_are_checked_on_the_best_fusion(result: Evaluation) -> None:
    reached = {(floor.language, floor.figure): floor.reached for floor in result.floors}
    assert reached == {("all", "recall_1"): True, ("zh", "mrr"): False, ("all", "abstained"): True}
    assert not result.passed


def test_a_floor_of_a_language_leaves_other_sets_alone() -> None:
    english = replace(GOLDEN, name="english", questions=(Question("2", "read file", {"file": 1}),))
    demand = Demand.parse("mixed:recall_1=0.1")
    found = compare([GOLDEN, english], [FakeEmbedder(64)], [Configuration()], demands=[demand])
    assert [floor.set for floor in found.floors] == ["tiny"]
    own = compare([english], [FakeEmbedder(64)], [Configuration()], demands=[Demand.parse("en:recall_1=0.1")])
    assert own.floors[0].reached
    with pytest.raises(InvalidArgument, match="concerns no question"):
        compare([english], [FakeEmbedder(64)], [Configuration()], demands=[demand])


@pytest.mark.parametrize("text", ["magic=1", "recall_1", "recall_1=x", "fr:recall_1=1", "recall_1=-1", "", "=1"])
def test_a_floor_that_means_nothing_lists_what_does(text: str) -> None:
    with pytest.raises(InvalidArgument, match="recall_1, recall_5"):
        Demand.parse(text)


def test_a_set_without_questions_or_without_documents_has_figures_of_nothing() -> None:
    for golden in (replace(GOLDEN, questions=()), replace(GOLDEN, corpus={})):
        found = compare([golden], [FakeEmbedder(64)], [Configuration()])
        assert all(row.recall_10 == 0 for row in found.rows)
        assert found.passed


def test_two_sets_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="one name"):
        compare([GOLDEN, GOLDEN], [FakeEmbedder(64)], [Configuration()])


def test_a_result_is_kept_listed_and_read_again(result: Evaluation, tmp_path: Path) -> None:
    assert list_results(tmp_path) == []
    file = save_result(tmp_path, result)
    later = result.model_copy(update={"id": "29991231T000000Z-ffffff"})
    save_result(tmp_path, later)
    assert read_result(tmp_path, result.id) == result
    assert [one.id for one in list_results(tmp_path)] == [later.id, result.id]
    assert json.loads(file.read_text(encoding="utf-8"))["format"] == 1
    assert not list(file.parent.glob("*.tmp"))


def test_a_damaged_result_is_passed_over_and_an_id_is_no_path(result: Evaluation, tmp_path: Path) -> None:
    save_result(tmp_path, result).with_name("broken.json").write_text("{", encoding="utf-8")
    assert [one.id for one in list_results(tmp_path)] == [result.id]
    with pytest.raises(StoreCorrupt, match="damaged"):
        read_result(tmp_path, "broken")
    with pytest.raises(NotFound, match="--save"):
        read_result(tmp_path, "none")
    for bad in ("../secret", "a/b", "", ".", "x.json", "ö"):
        with pytest.raises(InvalidArgument, match="letters, digits"):
            read_result(tmp_path, bad)
