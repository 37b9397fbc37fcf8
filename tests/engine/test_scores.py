"""What a search says of itself: scores of hits, the confidence of an answer, and what is left out for it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

import homing
from homing import Homing
from homing.embedders.local import LocalProvider
from homing.engine.ranking import MIN_CONFIDENCE, confidence, is_silent, rank, score, similarity, worth
from homing.engine.search import cut
from homing.records import Hit, Retrieved
from homing.stores.store import Measured, Worded, Words
from homing.text.small_talk import is_noise, is_small_talk
from homing.vectors import Scale

TEXTS = {
    "lighthouse": "他一个人守着灯塔，三十年没有和人说话。",
    "commit": "Amend a commit that was not pushed yet, or write a new commit message.",
    "passport": "出發前三天確認護照有效期，並預約酒店。",
    "invoice": "Invoices go out on the first working day; 账单每月一号结算。",
    "recipe": "红烧肉要先焯水，再用小火炖一个小时。",
    "garden": "Tomatoes need sun, water and a stick to climb.",
    "meeting": "会议纪要：下周三之前完成 release 的测试。",
    "weather": "Tomorrow it rains in the north; take an umbrella.",
    "server": "重启服务器之前先备份数据库。",
    "music": "She practises the violin every evening.",
}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homing]:
    with homing.open(tmp_path_factory.mktemp("scores")) as app:
        app.add(TEXTS, "notes")
        yield app


@pytest.fixture(scope="module")
def fitted() -> Scale:
    scale = LocalProvider().scale
    assert scale is not None
    assert scale.fit is not None
    return scale


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ("孤独地守着灯塔的人", "lighthouse"),
        ("write a commit message", "commit"),
        ("护照什么时候确认", "passport"),
        ("護照有效期", "passport"),
        ("release 测试什么时候完成", "meeting"),
        ("账单 billing 几号结算", "invoice"),
        ("do I need an umbrella tomorrow?", "weather"),
    ],
)
def test_a_right_answer_stays_in_chinese_english_mixed_and_traditional(app: Homing, query: str, right: str) -> None:
    found = cut(app.search(query, "notes"))
    assert found[0].id == right
    assert found.confidence is not None
    assert found.confidence >= MIN_CONFIDENCE
    assert [hit.score for hit in found] == sorted((hit.score or 0.0 for hit in found), reverse=True)


@pytest.mark.parametrize(
    "query", ["你好", "您好！", "謝謝你", "thanks a lot", "hello 你好", "ok 好的", "zzqqxx", "asdfgh", "？？？"]
)
def test_small_talk_and_noise_find_nothing_and_say_how_much_was_left_out(app: Homing, query: str) -> None:
    found = cut(app.search(query, "notes"))
    assert not found.hits
    assert found.left_out == len(TEXTS)


def test_identity_scores_one_and_scores_follow_the_similarity(app: Homing, fitted: Scale) -> None:
    [first, *others] = app.search(TEXTS["recipe"], "notes")
    assert first.id == "recipe"
    assert first.score == pytest.approx(1.0, abs=0.01)
    assert all((hit.score or 0.0) < 0.9 for hit in others)
    scores = [score(near / 50, fitted, Words(texts=1000)) for near in range(-50, 51)]
    assert scores == sorted(scores)
    assert scores[-1] == pytest.approx(1.0)


def test_a_score_does_not_grow_with_the_collection(fitted: Scale) -> None:
    """Four terms: one in a hundredth of the texts, two that a single text holds, one that none does."""

    def scored(texts: int) -> float:
        idf = [math.log((texts - held + 0.5) / (held + 0.5)) for held in (texts / 100, 1, 1, 0)]
        bm25 = sum(0.5 * one for one in idf[:3])
        words = Words((), sum(idf), idf[1], texts)
        return score(similarity(0.5, *worth(bm25, words)), fitted, words)

    assert abs(scored(100_000) - scored(1_000)) <= 0.03


def test_a_long_request_does_not_gain_by_its_length_alone(fitted: Scale) -> None:
    once, twice = Words((), 20.0, 5.0, 1000), Words((), 40.0, 5.0, 1000)
    near, nearer = (similarity(0.4, *worth(share, words)) for share, words in ((10.0, once), (20.0, twice)))
    assert score(nearer, fitted, twice) - score(near, fitted, once) < 0.25
    assert similarity(0.4, *worth(10.0, twice)) < near


def test_a_shared_word_brings_a_text_nearer_and_none_leaves_it_where_it_is() -> None:
    words = Words((Worded("a", 3.0),), 12.0, 5.0, 100)
    first, second = rank([Measured("b", 0.5, 0.0), Measured("a", 0.5, 3.0)], words)
    assert (first.id, second.id) == ("a", "b")
    assert second.similarity == pytest.approx(0.5)


def test_a_lead_makes_an_answer_surer(fitted: Scale) -> None:
    words = Words((), 12.0, 5.0, 1000)
    field = [(0.3, 0.3)] * 10
    alone = confidence("灯塔在哪里", [(0.6, 0.6), (0.35, 0.35), *field], words, fitted)
    crowded = confidence("灯塔在哪里", [(0.6, 0.6), (0.59, 0.59), *field], words, fitted)
    far = confidence("灯塔在哪里", [(0.35, 0.35), (0.34, 0.34), *field], words, fitted)
    assert alone is not None
    assert crowded is not None
    assert far is not None
    assert alone > crowded > far


def test_an_answer_in_another_language_may_be_further_away_if_it_stands_out(fitted: Scale) -> None:
    words, field = Words((), 12.0, 5.0, 1000), [(0.2, 0.2)] * 20
    by_meaning = confidence("灯塔在哪里", [(0.45, 0.45), (0.3, 0.3), *field], words, fitted)
    by_words = confidence("灯塔在哪里", [(0.45, 0.3), (0.3, 0.3), *field], words, fitted)
    crowded = confidence("灯塔在哪里", [(0.45, 0.45), (0.3, 0.3), *[(0.3, 0.3)] * 20], words, fitted)
    assert by_meaning is not None
    assert by_words is not None
    assert crowded is not None
    assert not is_silent(by_meaning)
    assert by_meaning > by_words
    assert by_meaning > crowded


def test_among_a_handful_of_texts_nothing_but_small_talk_is_silenced(fitted: Scale) -> None:
    few = Words((), 12.0, 5.0, 3)
    assert confidence("so lonely", [(0.15, 0.15), (0.14, 0.14)], few, fitted) is None
    assert confidence("你好", [(0.15, 0.15), (0.14, 0.14)], few, fitted) == 0.0


def test_a_word_that_many_texts_hold_is_not_silenced_where_it_stands(fitted: Scale) -> None:
    # 灯塔 in 64 of 104 texts: the words together say less than one rare word, and no hit leads.
    common = Words((Worded("a", 1.0), Worded("b", 1.0)), 1.5, 4.2, 104)
    held = similarity(0.3, *worth(1.0, common))
    assert confidence("灯塔", [(held, 0.3), (held, 0.3)], common, fitted) is None
    without = confidence("灯塔", [(0.3, 0.3), (0.3, 0.3)], common, fitted)
    assert without is not None
    assert is_silent(without)


def test_without_a_fit_nothing_is_claimed_and_nothing_is_cut() -> None:
    words = Words((), 12.0, 5.0, 1000)
    assert confidence("灯塔", [(0.9, 0.9)], words, None) is None
    assert confidence("灯塔", [(0.9, 0.9)], words, Scale(0.2, 15.0)) is None
    weak = Retrieved((Hit("a", "notes", "灯塔", {}, 0.01, 0.0, 0.01),), "hybrid")
    assert cut(weak) == weak


def test_what_is_said_for_politeness_is_small_talk_and_what_is_about_something_is_not() -> None:
    for said in (
        "你好",
        "妳好",
        "在吗？",
        "好的，谢谢",
        "Good morning!",
        "what's up",
        "嗯嗯 yes",
        "哈哈哈哈",
        "thank you so much",
    ):
        assert is_small_talk(said), said
    for asked in (
        "你好，帮我提交代码",
        "hello world",
        "好书推荐",
        "test report",
        "“再见”",
        "不是你的错",
        "notes",
        "早上吃什么",
        "",
    ):
        assert not is_small_talk(asked), asked
    for typed in ("asdf qwer", "hxqahj", "qqdxa zkjw"):
        assert is_noise(typed), typed
    for written in ("git commit", "灯塔", "nginx", "Zhejiang", "puzzle", "jquery"):
        assert not is_noise(written), written


def test_noise_that_is_read_as_a_word_finds_nothing(fitted: Scale) -> None:
    read = Words((Worded("a", 3.0),), 5.0, 5.0, 100, {"tyui": "tui"})
    assert confidence("tyui", [(0.6, 0.2), (0.3, 0.3)], read, fitted) == 0.0
    assert confidence("comit", [(0.6, 0.2), (0.3, 0.3)], read, fitted) != 0.0


def test_every_operation_leaves_out_the_same(tmp_path: Path) -> None:
    from homing.operations.documents import DocumentSearch, search_documents
    from homing.operations.memory import Recall, recall
    from homing.operations.operation import Call

    with homing.open(tmp_path) as own:
        for name, text in TEXTS.items():
            own.documents.save("p", name, text)
            own.memory.remember("knowledge", text, entry_id=name)
        assert own.documents.flush(60)
        assert own.engine.flush()
        call = Call(own, own)
        said = search_documents(call, DocumentSearch(project="p", query="你好"))
        assert not said.hits
        assert said.left_out == len(TEXTS)
        assert "weaker hits left out" in said.summary()
        assert len(search_documents(call, DocumentSearch(project="p", query="你好", weaker=True)).hits) == len(TEXTS)
        assert not recall(call, Recall(query="你好")).hits
        assert recall(call, Recall(query="红烧肉怎么做")).hits[0].id == "recipe"
