"""The bilingual tokenizer: what is written, what is asked, what is reported as matched."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from homing.stores.postings import segment
from homing.stores.postings.index import Part, View
from homing.stores.postings.question import Question
from homing.text.terms import numbers_of, terms_in
from homing.text.tokens import MAX_TERMS, matched_terms, query_terms, spans, tokens

ANY_TEXT = st.text(st.characters(), max_size=60) | st.text(
    st.sampled_from("提交代码幫碼灯aZ9 _-.'+#/,\"()*:\x00\ud800\u200d\U0001f3fd👍👩🇨🇳éﾊﾞe\u0301\u3000１Ａ한が𠮷。"),
    max_size=40,
)


def found_by(query: str, *texts: str) -> list[int]:
    """Which texts the keyword index finds, best first."""
    built = segment.segment_of([(number, terms_in(text)) for number, text in enumerate(texts)])
    pieces = list(built.pieces())
    view = View([Part.of(1, built.header, np.zeros(0, np.int64))])
    question = Question(
        view,
        query_terms(query),
        lambda wanted, _: [
            one for part, ranges in wanted for one in segment.lists_in(part.header, ranges, dict(enumerate(pieces)))
        ],
    )
    found, _ = question.best(len(texts))
    return [int(number) for number in found]


def test_a_two_character_chinese_word_is_found_inside_a_sentence() -> None:
    assert found_by("提交", "请帮我提交代码", "打开客厅的灯") == [0]


def test_one_chinese_character_is_found_inside_a_word() -> None:
    assert found_by("灯", "打开客厅台灯", "关闭窗户") == [0]


def test_a_rare_character_is_found_where_the_pair_differs() -> None:
    assert found_by("囊肿", "囊性纤维化", "天气很好") == [0]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("幫我提交代碼", "提交代码"),
        ("软件", "軟件下載"),
        ("看着", "看著窗外"),
        ("３楼", "3楼会议室"),
        ("ＧＰＴ", "gpt 模型"),
        ("cafe", "Café au lait"),
        ("café", "cafe\u0301"),
        ("バス", "ﾊﾞｽ停"),
        ("naïve Ångström", "naive angstrom"),
        ("Straße", "STRASSE"),
        ("files", "one file"),
        ("party boxes", "parties and a box"),
        ("user", "the user's name"),
        ("한국", "한국어를"),
        ("👍", "很好👍🏽"),
        ("👩", "👩‍👩‍👧 family"),
        ("❤", "I ❤️ it"),
        ("🇨🇳", "来自🇨🇳"),
        ("𠮷野家", "在𠮷野家吃饭"),
        ("1000", "costs 1,000 yuan"),
        ("हिन्दी", "हिन्दी भाषा।"),
    ],
)
def test_what_reads_the_same_is_found(query: str, text: str) -> None:
    assert found_by(query, text, "something else 其他") == [0]


@pytest.mark.parametrize("spelling", ["file_read", "fileRead", "FileRead", "file-read", "file.read", "FILE_READ"])
def test_an_identifier_is_found_however_it_is_joined_and_by_its_parts(spelling: str) -> None:
    assert tokens(spelling) == ["fileread", "file", "read"]
    assert found_by("fileread", spelling) == found_by("read", spelling) == [0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C++ 和 C# 与 .NET", ["c++", "和", "c#", "与", ".net", "net"]),
        ("用C#写", ["用", "c#", "写"]),
        ("GPT-4o", ["gpt4o", "gpt", "4o"]),
        ("GPT4o", ["gpt4o", "gpt", "4o"]),
        ("node.js NodeJS", ["nodejs", "node", "js", "nodejs", "node", "js"]),
        ("v2.0 3.14", ["v2.0", "3.14"]),
        ("getUserName HTMLParser", ["getusername", "get", "user", "name", "htmlparser", "html", "parser"]),
        ("iPhone15 utf8", ["iphone15", "iphone", "15", "utf8", "utf", "8"]),
        ("i18n h264 720p", ["i18n", "h264", "720p"]),
        ("a1b2c3d4e5", ["a1b2c3d4e5"]),
        ("pages 3-5, 2024-01-15", ["page", "3", "5", "20240115", "2024", "01", "15"]),
        ("li.lei@example.com", ["lilei", "li", "lei", "examplecom", "example", "com"]),
        ("don't", ["dont"]),
        ("提交代码", ["提", "提交", "交", "交代", "代", "代码", "码"]),
        ("5G网", ["5g", "网"]),
        ("— ，。!? \t", []),
        ("", []),
    ],
)
def test_how_a_text_is_cut(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_c_plus_plus_is_not_c() -> None:
    assert found_by("C++", "learn C", "learn C++", "learn C#") == [1]


def test_a_word_is_written_as_often_as_the_text_repeats_it() -> None:
    assert tokens("git Git 提 git").count("git") == 3


def test_a_query_asks_each_term_once_and_no_stop_words() -> None:
    assert query_terms("How do I commit the code, commit it?") == ["commit", "code"]
    assert "帮我" not in query_terms("帮我提交代码")
    assert {"提交", "代码"} <= set(query_terms("帮我提交代码"))


def test_common_single_characters_are_not_asked_when_pairs_are() -> None:
    assert query_terms("文件") == ["文件"]


@pytest.mark.parametrize("query", ["what is it", "是什么", "的", "the 的"])
def test_a_query_of_stop_words_alone_is_asked_rather_than_nothing(query: str) -> None:
    assert query_terms(query)


def test_a_megabyte_of_query_asks_a_bounded_number_of_terms() -> None:
    assert len(query_terms("孤独的感觉 loneliness " * 50_000)) <= MAX_TERMS
    assert len(query_terms("".join(map(chr, range(0x4E00, 0x9FFF))) * 50)) == MAX_TERMS
    assert max(map(len, tokens("x" * 1_000_000))) <= 64


@given(ANY_TEXT)
def test_the_index_keeps_the_tokens_of_a_text_and_no_others(text: str) -> None:
    assert sorted(terms_in(text).tolist()) == sorted(numbers_of(tokens(text)).tolist())


@pytest.mark.parametrize("gap", [" ", "\n", "!", ".", ",", " . ", "-"])
def test_a_page_of_separators_is_gone_over_once(gap: str) -> None:
    assert tokens(f"a{gap * 300_000}b") == ["a", "b"]


@given(ANY_TEXT)
@example('" OR NEAR(a, b) * ^ : - {x} \x00 \ud800')
def test_any_string_becomes_tokens_that_a_plain_index_keeps(text: str) -> None:
    for token in tokens(text) + query_terms(text):
        assert token
        assert not any(character.isspace() for character in token)
        token.encode("utf-8")
        assert all(c.islower() or c.isdigit() or c in "+#." for c in token if c.isascii())


@given(ANY_TEXT, ANY_TEXT)
def test_no_query_can_break_the_index_and_every_text_is_found_by_itself(query: str, text: str) -> None:
    found_by(query, text)
    if query_terms(text):
        assert found_by(text, text) == [0]


@given(ANY_TEXT)
def test_what_is_asked_is_always_something_that_would_be_written(text: str) -> None:
    assert set(query_terms(text)) <= set(tokens(text))


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("帮我提交代码", "请提交代码", ["提交代码"]),
        ("帮我提交代码", "提交信息，代码", ["提交", "代码"]),
        ("提交代碼", "提交代码", ["提交代碼"]),
        ("打开客厅的灯", "打開客廳燈", ["打开客厅", "灯"]),
        ("Café files", "the cafes have a file", ["Café", "files"]),
        ("getUserName", "user name", ["user", "name"]),
        ("How to write C++ 代码", "C++代码规范", ["C++", "代码"]),
        ("👍🏽", "好👍", ["👍🏽"]),
        ("a", "Anna", []),
        ("天气", "提交代码", []),
    ],
)
def test_matched_words_are_reported_as_a_person_reads_them(query: str, text: str, expected: list[str]) -> None:
    assert matched_terms(query, text) == expected


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("提交代码", "请\u3000提交代碼，再提交", ["提交代碼", "提交"]),
        ("cafe GPT", "Ｇｐｔ im Cafe\u0301!", ["Ｇｐｔ", "Cafe\u0301"]),
        ("灯", "灯和台燈", ["灯", "燈"]),
        ("read", "call file_read()", ["file_read"]),
        ("バス", "ﾊﾞｽ停", ["ﾊﾞｽ"]),
    ],
)
def test_spans_point_into_the_original_text(query: str, text: str, expected: list[str]) -> None:
    assert [text[span.start : span.end] for span in spans(query, text)] == expected


@given(ANY_TEXT, ANY_TEXT)
def test_spans_are_ordered_apart_and_inside_the_text(query: str, text: str) -> None:
    matched_terms(query, text)
    end = 0
    for span in spans(query, text):
        assert end <= span.start < span.end <= len(text)
        end = span.end


def test_usual_letters_are_folded_at_once_just_as_one_by_one() -> None:
    from homing.text.folding import _ONE_TO_ONE, Folded, fold

    usual = [chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000 and _ONE_TO_ONE.fullmatch(chr(code))]
    assert len(usual) > 20_000
    text = "".join(usual)
    assert [fold(one) for one in usual] == list(fold(text)) == list(fold(text[::-1]))[::-1]
    folded = Folded(text)
    assert [folded.place(at, at + 1) for at in (0, 500, len(text) - 1)] == [
        (0, 1), (500, 501), (len(text) - 1, len(text)),
    ]  # fmt: skip
