"""The token estimate, and cutting by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.embedders.window import cut_to_tokens, estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("abc", 1), ("abcd", 2), ("很", 2), ("很长", 3), ("🙂", 2), ("GPT-4o 很贵", 6)]
)
def test_three_ascii_bytes_or_two_others_are_a_token(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(alphabet=st.characters(codec="utf-8")), st.integers(0, 40))
def test_a_cut_text_is_the_longest_beginning_that_fits(text: str, tokens: int) -> None:
    cut = cut_to_tokens(text, tokens)
    assert text.startswith(cut)
    assert estimate_tokens(cut) <= tokens
    assert cut == text or estimate_tokens(text[: len(cut) + 1]) > tokens
