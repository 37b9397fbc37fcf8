"""What crosses seams behaves like data."""

from __future__ import annotations

import pytest

from homing.records import Hit, Match, Retrieved, text_hash


def hit(name: str) -> Hit:
    return Hit(id=name, collection="c", text="", metadata={}, score=None, cosine=None, fused=0.1)


def test_an_answer_is_a_sequence_of_its_hits() -> None:
    answer = Retrieved((hit("a"), hit("b")), "hybrid")
    assert [one.id for one in answer] == ["a", "b"]
    assert answer[0].id == "a"
    assert [one.id for one in answer[:1]] == ["a"]
    assert len(answer) == 2
    assert hit("a") in answer


def test_an_answer_without_hits_is_falsy_and_keeps_its_story() -> None:
    answer = Retrieved((hit("a"),), "keyword", True, "vector:TIMEOUT").with_hits([])
    assert not answer
    assert answer.degraded
    assert answer.reason == "vector:TIMEOUT"


def test_distance_is_one_minus_cosine() -> None:
    assert Match("a", "c", 0.25, {}, "").cosine == pytest.approx(0.75)
    assert Match("a", "c", None, {}, "", 3.0).cosine is None


def test_any_string_has_a_hash_of_its_own() -> None:
    assert text_hash("打开") != text_hash("關閉")
    assert text_hash("\ud800") != text_hash("\ud801")
