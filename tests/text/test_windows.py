"""Windows of 1000 characters that share 150."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homing.errors import InvalidArgument
from homing.text.sentences import windows
from tests.effort import times

CHINESE = "".join(f"第{n}句讲的是检索系统如何把文字变成向量，再和关键词的结果融合在一起。" for n in range(200))
ENGLISH = " ".join(f"Sentence {n} says how a retrieval engine fuses both of its legs." for n in range(200))


@pytest.mark.parametrize(("text", "end"), [(CHINESE, "。"), (ENGLISH, ".")])
def test_windows_are_whole_sentences_in_both_languages(text: str, end: str) -> None:
    found = windows(text)
    assert len(found) > 5
    for one in found:
        assert len(one.text) <= 1000
        assert one.text == text[one.start : one.end]
        assert one.text.startswith(("第", "Sentence"))
        assert one.text.endswith(end)
    assert all(len(one.text) > 800 for one in found[:-1])


@pytest.mark.parametrize("text", [CHINESE, ENGLISH])
def test_neighbours_share_about_150_characters(text: str) -> None:
    found = windows(text)
    for one, following in pairwise(found):
        assert 80 <= one.end - following.start <= 150


def test_a_short_text_is_one_window() -> None:
    assert [one.text for one in windows("\n 两个字 \n")] == ["两个字"]


def test_a_paragraph_border_is_preferred() -> None:
    first = "段落一的句子写在这里。" * 70
    found = windows(f"{first}\n\n{'段落二的句子写在那里。' * 70}")
    assert found[0].text == first


def test_text_without_any_border_is_cut_between_characters() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    found = windows(family * 500)
    assert all(one.text.startswith("\U0001f468") and not one.text.endswith("\u200d") for one in found)
    assert windows("无" * 2500)[1].start == 850


def test_what_says_nothing_is_left_out() -> None:
    assert windows("* * *\n\n---\n") == []
    assert windows("") == []


def test_an_overlap_of_half_a_window_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        windows("text", size=100, overlap=50)


@pytest.mark.slow
@settings(max_examples=times(50, in_full=1_000), deadline=None)
@given(
    st.text(st.sampled_from("文字 a.。！？\n\r\t，,1é\u0301\u3000😀\u200d"), max_size=400),
    st.integers(20, 60),
    st.integers(0, 9),
)
def test_every_word_is_in_a_window_and_windows_are_in_order(text: str, size: int, overlap: int) -> None:
    found = windows(text, size=size, overlap=overlap)
    covered = {at for one in found for at in range(one.start, one.end)}
    assert {at for at, char in enumerate(text) if char.isalnum()} <= covered
    assert all(len(one.text) <= size and one.text == text[one.start : one.end] for one in found)
    assert [one.start for one in found] == sorted({one.start for one in found})


def test_accents_without_a_letter_do_not_keep_windows_from_going_on() -> None:
    accents = "\u0301" * 9
    text = f"b\n\n{accents}ba{accents}"
    found = windows(text, size=20, overlap=4)
    assert [one.start for one in found] == sorted({one.start for one in found})
    assert found[-1].text.endswith(f"a{accents}")
