"""Other ways of writing a word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.text.folding import MAX_SPELLINGS, fold, spellings


@pytest.mark.parametrize(
    ("word", "others"),
    [
        ("数据", {"數據"}),
        ("數據", {"数据"}),
        ("灯", {"燈"}),
        ("API", {"ＡＰＩ"}),
        ("2024", {"２０２４"}),
        ("备份", {"備份"}),
        ("退款", set()),
    ],
)
def test_a_word_is_written_in_several_ways(word: str, others: set[str]) -> None:
    found = spellings(word)
    assert found[0] == word
    assert others <= set(found[1:])


def test_no_word_has_no_spelling() -> None:
    assert spellings("") == []


@given(st.text(min_size=1, max_size=8) | st.text(st.sampled_from("发干后台面数据里钟系"), min_size=1, max_size=12))
def test_every_spelling_reads_the_same(word: str) -> None:
    found = spellings(word)
    assert found[0] == word
    assert len(found) == len(set(found)) <= MAX_SPELLINGS
    assert {fold(one) for one in found} == {fold(fold(word))} | {fold(word)}
