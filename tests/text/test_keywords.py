"""Keywords for engines that match substrings (seed 004)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.errors import InvalidArgument
from homing.text.keywords import extract_keywords


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("帮我提交代码", ["提交", "提交代码", "代码"]),
        ("what did we decide about billing?", ["decide", "billing"]),
        ("如何用 C++ 调用 GPT-4o 的接口 v2.0", ["C++", "调用", "GPT-4o", "接口", "v2.0"]),
        ("幫我查詢會議記錄", ["查詢", "會議", "記錄"]),
        ("file_read ３楼", ["file_read", "3", "楼"]),
        ("用户在注册账号", ["用户", "注册", "账号"]),
        ("打开客厅的灯", ["打开", "打开客厅", "客厅", "的灯"]),
        ("怎么申请退款", ["申请", "申请退款", "退款"]),
        ("请问如何请假，你与参与者", ["请假", "参与者"]),
        ("灯", ["灯"]),
    ],
)
def test_words_of_both_languages_numbers_and_chinese_n_grams(query: str, expected: list[str]) -> None:
    assert extract_keywords(query) == expected


@pytest.mark.parametrize("query", ["", "  ", "什么是的吗", "what is the", "the 的", "？！\"'%_"])
def test_nothing_but_stop_words_gives_no_keywords(query: str) -> None:
    assert extract_keywords(query) == []


def test_at_most_ten_that_cover_the_whole_query() -> None:
    query = "用户注册账号无法收到验证邮件，登录页面显示错误代码，后台日志没有任何记录，最后数据库连接超时"
    keywords = extract_keywords(query)
    assert len(keywords) == 10
    assert keywords[0] == "用户"
    assert any(keyword in "数据库连接超时" for keyword in keywords[-2:])


def test_a_repeated_word_counts_once() -> None:
    assert extract_keywords("Error error 错误，错误") == ["Error", "错误"]


def test_the_limit_holds_and_a_negative_one_is_refused() -> None:
    assert extract_keywords("提交代码", limit=0) == []
    assert len(extract_keywords("提交代码 and more words", limit=2)) == 2
    with pytest.raises(InvalidArgument):
        extract_keywords("提交", limit=-1)


@given(st.text(max_size=80) | st.text(st.sampled_from("提交代码的在灯aB9_.'-+#\x00\ud800👍é３ \"%"), max_size=40))
def test_any_string_gives_at_most_ten_readable_keywords(query: str) -> None:
    keywords = extract_keywords(query)
    assert len(keywords) <= 10
    assert len(set(keywords)) == len(keywords)
    assert all(keyword.strip() == keyword != "" for keyword in keywords)
