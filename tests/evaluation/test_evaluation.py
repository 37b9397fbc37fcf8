"""Golden sets: read, asked, scored; figures that a hand can check."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from homing.engine import Engine
from homing.engine.search import HybridOptions, search
from homing.errors import EmbeddingError, InvalidArgument, NotFound
from homing.evaluation.golden import GoldenSet, Question, read_golden
from homing.evaluation.run import (
    COLLECTION,
    NEAREST,
    Answers,
    Configuration,
    ask,
    index,
    latency,
    ndcg,
    recall,
    reciprocal_rank,
    score,
    sweep,
    thresholds,
)
from homing.records import Hit, Retrieved
from homing.stores.registry import open_store
from homing.testing.fake import FakeEmbedder


def write(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with closing(open_store(tmp_path / "eval.db")) as store, closing(Engine(store, FakeEmbedder(128))) as engine:
        yield engine


def found(**scores: float | None) -> Retrieved:
    """An answer with these hits."""
    return Retrieved(tuple(Hit(name, "c", "", {}, at, at, 1.0) for name, at in scores.items()), "hybrid")


def test_figures_are_those_a_hand_computes() -> None:
    assert recall(["a", "b"], {"b": 1}, 1) == 0
    assert recall(["a", "b"], {"b": 1}, 2) == 1
    assert reciprocal_rank(["a", "b"], {"b": 1}) == 0.5
    assert reciprocal_rank(["a"], {"b": 1}) == 0
    assert ndcg(["a", "b"], {"a": 1, "b": 1}) == pytest.approx(1)
    assert ndcg(["x", "a"], {"a": 1}) == pytest.approx(0.6309, abs=1e-4)
    assert ndcg(["a"], {}) == 0


def test_a_folder_is_read_with_names_before_texts(tmp_path: Path) -> None:
    write(
        tmp_path / "corpus.jsonl", {"id": 1, "name": "git-commit", "text": "生成提交信息"}, {"id": 2, "text": "plain"}
    )
    write(tmp_path / "queries.jsonl", {"id": "q", "text": "帮我提交 code"})
    write(tmp_path / "qrels.jsonl", {"qid": "q", "did": 1, "score": 2})
    golden = read_golden(tmp_path)
    assert golden.corpus == {"1": "git-commit: 生成提交信息", "2": "plain"}
    [question] = golden.questions
    assert (question.relevant, question.language) == ({"1": 2.0}, "mixed")


def test_one_file_holds_documents_and_questions(tmp_path: Path) -> None:
    file = write(
        tmp_path / "g.jsonl", {"id": "a", "text": "甲"}, {"query": "甲?", "expected": ["a"]}, {"query": "none"}
    )
    golden = read_golden(file)
    assert golden.name == "g"
    assert [question.relevant for question in golden.questions] == [{"a": 1.0}, {}]


def test_what_cannot_be_read_says_where(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no golden set"):
        read_golden(tmp_path / "none.jsonl")
    with pytest.raises(NotFound, match=r"qrels\.jsonl"):
        read_golden(tmp_path)
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "text": "x"}\n{oops', encoding="utf-8")
    with pytest.raises(InvalidArgument, match=r"bad\.jsonl:2 is not JSON"):
        read_golden(tmp_path / "bad.jsonl")
    with pytest.raises(InvalidArgument, match="neither"):
        read_golden(write(tmp_path / "odd.jsonl", {"what": 1}))


@pytest.mark.parametrize(
    ("text", "language"), [("打开灯", "zh"), ("turn on", "en"), ("打开 light", "mixed"), ("开A", "zh")]
)
def test_the_language_of_a_question(text: str, language: str) -> None:
    assert Question("q", text, {}).language == language


TINY = GoldenSet(
    "tiny",
    {"git": "生成Git提交信息 commit", "file": "读取文件 file", "calc": "数学计算 sum"},
    (Question("1", "提交", {"git": 1}), Question("2", "read file", {"file": 1}), Question("3", "天气", {})),
)


def test_a_set_is_measured_from_end_to_end(engine: Engine) -> None:
    steps: list[tuple[int, int]] = []
    index(TINY, engine, lambda done, total: steps.append((done, total)))
    configurations = [Configuration(0, 1), Configuration()]
    answers = ask(TINY, engine, configurations)
    rows = score("tiny", answers, configurations)
    everything = {(row.configuration, row.language): row for row in rows}
    assert everything["keyword", "all"].recall_1 == 1
    assert everything["keyword", "all"].abstained == 1
    assert everything["hybrid 0.7/0.3 k=60", "zh"].questions == 2
    assert steps == [(3, 3)]
    timed = latency(TINY, engine)
    assert timed is not None
    assert 0 < timed.p50_ms <= timed.p95_ms
    assert timed.questions == 3


@pytest.mark.parametrize(
    "configuration",
    [
        Configuration(1, 0),
        Configuration(0, 1),
        Configuration(fusion="evidence"),
        Configuration(0.5, 0.5, 10),
        Configuration(0.2, 0.8),
        Configuration(min_score=0.9),
    ],
    ids=lambda one: one.name,
)
def test_what_is_scored_is_what_a_search_answers(engine: Engine, configuration: Configuration) -> None:
    index(TINY, engine)
    for one in ask(TINY, engine, [configuration]):
        options = HybridOptions(
            mode=configuration.mode,
            fusion=configuration.fusion,
            vector_weight=configuration.vector_weight,
            keyword_weight=configuration.keyword_weight,
            rrf_k=configuration.rrf_k,
            min_score=configuration.min_score,
        )
        seen = search(one.question.text, COLLECTION, store=engine.store, embedder=engine.models, options=options)
        assert one.found[configuration].hits == seen.hits


def test_a_model_that_fails_is_no_measurement(engine: Engine) -> None:
    index(TINY, engine)
    failing = Engine(engine.store, FakeEmbedder(128, fail_with=EmbeddingError("cannot embed this")))
    for measure in (lambda: index(TINY, failing), lambda: ask(TINY, failing, [Configuration(0, 1)])):
        with pytest.raises(EmbeddingError, match="cannot embed this"):
            measure()


def test_a_sweep_goes_from_vector_to_keyword() -> None:
    names = [configuration.name for configuration in sweep(0.5)]
    assert names == ["vector", "hybrid 0.5/0.5 k=60", "keyword"]
    assert Configuration(fusion="evidence").name == "hybrid evidence"


def test_abstaining_is_judged_by_the_score_of_what_is_shown() -> None:
    words, fused = Configuration(0, 1), Configuration()
    near = Answers(Question("1", "q", {"a": 1}), {fused: found(a=0.8, b=0.1), words: found(b=None)})
    far = Answers(Question("2", "q", {}), {fused: found(a=0.3, b=0.1), words: found(b=None)})
    rows = {row.configuration: row for row in score("s", [near, far], [fused, words])}
    assert (rows["hybrid 0.7/0.3 k=60"].abstained, rows["hybrid 0.7/0.3 k=60"].kept) == (1, 1)
    assert (rows["keyword"].abstained, rows["keyword"].kept) == (0, 1)
    [strict] = score("s", [near, far], [fused], threshold=0.9)
    assert (strict.abstained, strict.kept) == (1, 0)


def test_every_threshold_is_weighed() -> None:
    near = Answers(Question("1", "q", {"a": 1}), {NEAREST: found(a=0.8)})
    far = Answers(Question("2", "q", {}), {NEAREST: found(a=0.3)})
    at = {one.threshold: (one.abstained, one.kept) for one in thresholds("s", "m", [near, far])}
    assert (at[0.0], at[0.5], at[0.8], at[1.0]) == ((0, 1), (1, 1), (1, 1), (1, 0))
    assert thresholds("s", "m", [near]) == []


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"query": "q", "expected": "git"}, "a list of ids"),
        ({"query": 7, "expected": []}, "`query` is a text"),
        ({"id": "a", "text": ["x"]}, "`text` is a text"),
    ],
)
def test_a_row_of_the_wrong_kind_says_so(tmp_path: Path, row: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        read_golden(write(tmp_path / "g.jsonl", row))


def test_weights_that_mean_nothing_are_refused() -> None:
    for weights in ((0, 0), (-1, 1)):
        with pytest.raises(InvalidArgument, match="weights"):
            Configuration(*weights)
    with pytest.raises(InvalidArgument, match="not negative"):
        Configuration(rrf_k=-60)
