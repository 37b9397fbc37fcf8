"""Which keywords a text contains."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.text.folding import fold
from homing.text.keywords import Containment
from homing.text.tokens import tokens

PIECES = [
    "file_read", "fileRead", "file-read", "keys", "key", "policies", "policy", "3.14", "C++", "c#", ".NET", "GPT-4o",
    "gpt4o", "user's", "boxes", "box", "e-mail", "email", "数据库", "數據", "据库", "退款政策", "退款", "款政", "政策",
    "🚀", "ＡＰＩ", "api", "café", "cafe", "1,000", "1000", "2024-01-15", "don't", "的", "。", " ",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "keyword"),
    [("數據庫備份", "数据库"), ("調用 ＡＰＩ", "api"), ("call fileRead", "file_read"), ("many policies", "policy")],
)
def test_a_keyword_is_found_however_it_is_written(text: str, keyword: str) -> None:
    assert Containment([keyword, "没有"]).in_text(text) == (keyword,)


@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join) | st.text(), st.lists(st.sampled_from(PIECES)))
def test_it_agrees_with_cutting_the_text_into_all_of_its_words(text: str, keywords: list[str]) -> None:
    written, words = fold(text).lower(), set(tokens(text))
    expected = [
        one for one in keywords if fold(one).lower() in written or (tokens(one) and words.issuperset(tokens(one)))
    ]
    assert list(Containment(keywords).in_text(text)) == expected
