"""Paragraphs: where they begin and end, that their offsets are exact, and that an edit stays local."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.errors import InvalidArgument
from homing.text.budget import estimate_tokens
from homing.text.paragraphs import Paragraph, paragraphs

WRITTEN = """
那天早上，天还没亮，他就起床了。
　　她推开窗，看见了雪。
“好。”
“你去哪里？”她问。
第一章 出发
# Title
## 小节
- item one
1. 第一
The cat sat on the mat.
and it went on until the line was full of words, as wrapped
| a | b |
|---|---|
```
~~~~
```python
---
===
***

👍🏽 emoji
"""
LINES = [*WRITTEN.split("\n"), " ", "x" * 70, "长" * 60 + "。", "word. " * 40, "tail\u2028next", "\x0c", "\ud800 odd"]
TEXTS = st.lists(st.sampled_from(LINES), max_size=25).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n", "\r", "\n\n"]).map(lambda end: end.join(lines))
)
PLAIN = [
    "他在雾里走了很久，没有遇见任何人。",
    "　　灯塔的光一闪一闪。",
    "The harbour was quiet that night.",
    "“谁？”",
    "# 标题",
    "雨停了！",
    "She wrote a long letter about the sea, the ships and the people who never came back.",
]


def texts(source: str, **options: int) -> list[str]:
    return [paragraph.text for paragraph in paragraphs(source, **options)]


@given(TEXTS | st.text(max_size=200), st.integers(8, 60), st.integers(0, 30))
def test_offsets_are_exact_and_every_word_is_in_one_paragraph(text: str, max_tokens: int, min_chars: int) -> None:
    end = 0
    covered = set[int]()
    for paragraph in paragraphs(text, max_tokens=max_tokens, min_chars=min_chars):
        assert text[paragraph.start : paragraph.end] == paragraph.text
        assert paragraph.text == paragraph.text.strip()
        assert paragraph.text
        assert paragraph.start >= end
        assert estimate_tokens(paragraph.text) <= max_tokens
        end = paragraph.end
        covered.update(range(paragraph.start, paragraph.end))
    assert all(at in covered for at, character in enumerate(text) if character.isalnum())


@given(st.lists(st.sampled_from(PLAIN), min_size=3, max_size=15), st.data())
def test_editing_one_paragraph_leaves_all_but_its_neighbours_alone(lines: list[str], data: st.DataObject) -> None:
    joint = data.draw(st.sampled_from(["\n", "\n\n"]))
    at = data.draw(st.integers(0, len(lines) - 1))
    edited = [*lines[:at], data.draw(st.sampled_from(["改过的一段。", "An edited one.", ""])), *lines[at + 1 :]]
    old, new = joint.join(lines), joint.join(edited)
    begin = len(joint.join(lines[:at]))
    end = begin + len(joint) * (at > 0) + len(lines[at])
    shift = len(new) - len(old)
    before = [(p.start, p.end) for p in paragraphs(old)]
    after = {(p.start, p.end) for p in paragraphs(new)}
    # The paragraph that was edited, and whichever touches it, may change; nothing further away may.
    touched = [i for i, (first, last) in enumerate(before) if first <= end + len(joint) and last >= begin - len(joint)]
    spared = [p for i, p in enumerate(before) if not touched or i < touched[0] - 1 or i > touched[-1] + 1]
    for first, last in spared:
        assert ((first, last) if last <= begin else (first + shift, last + shift)) in after


def test_an_edit_at_the_start_of_an_endless_paragraph_leaves_most_of_it_alone() -> None:
    sentences = [f"第{n}个人走进了房间，说了{n * 7919 % 1000}句话，然后离开。" for n in range(400)]
    old = set(texts("".join(sentences)))
    new = set(texts("前面多了一句话。" + "".join(sentences)))
    assert len(old) > 20
    assert len(old & new) >= len(old) * 0.8


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028"])
def test_blank_lines_part_paragraphs_whatever_ends_a_line(end: str) -> None:
    source = "第一段，第一行\n还是第一段。\n\n第二段。\n  \n\nThird one.\n".replace("\n", end)
    assert texts(source) == [f"第一段，第一行{end}还是第一段。", "第二段。", "Third one."]


def test_short_paragraphs_between_blank_lines_stay_apart() -> None:
    assert texts("“好。”\n\n第二。\n\n三") == ["“好。”", "第二。", "三"]


def test_a_chinese_novel_without_blank_lines_is_parted_by_its_lines() -> None:
    source = "　　那天早上，天还没亮。\n　　他起床了\n　　走进了雾里。"
    assert texts(source) == ["那天早上，天还没亮。", "他起床了", "走进了雾里。"]
    assert texts("雨停了。\n他笑了！\nThe end.") == ["雨停了。", "他笑了！", "The end."]


def test_wrapped_western_lines_are_one_paragraph() -> None:
    wrapped = (
        "It was a quiet evening in the harbour, and the ships had come home early.\n"
        "Nobody spoke. The keeper lit the lamp and went up the long stairs to look.\n"
        "at the sea."
    )
    assert texts(wrapped) == [wrapped]
    assert texts("All about cats.\nAll about dogs.") == ["All about cats.", "All about dogs."]


def test_short_lines_of_dialogue_join_and_can_be_kept_apart() -> None:
    source = "\n".join(f"“第{n}句。”" for n in range(40))
    joined = texts(source)
    assert 4 <= len(joined) < 30
    assert len(texts(source, min_chars=0)) == 40


def test_a_heading_goes_with_what_follows() -> None:
    source = "# 手册\n\n## 安装\n\n先装 Python。\n\n再装 homing。\n\nUsage\n-----\n\nRun it.\n\n# 附录"
    assert texts(source) == ["# 手册\n\n## 安装\n\n先装 Python。", "再装 homing。", "Usage\n-----\n\nRun it.", "# 附录"]
    assert texts("第十二章 归来\n天黑了。") == ["第十二章 归来\n天黑了。"]


def test_markdown_structures_are_not_torn_apart() -> None:
    front = "---\nname: x\n\ndescription: 提交: 代码\n---"
    code = "```python\ndef f():\n\n    return 1\n```"
    table = "| 名 | 值 |\n|---|---|\n| a | 1 |"
    items = "步骤：\n- 第一步。\n- 第二步。\n  续行。"
    assert texts("\n\n".join([front, code, table, items])) == [front, code, table, items]


def test_a_longer_fence_holds_a_shorter_one_and_an_open_fence_swallows_nothing() -> None:
    nested = "````\n```\n\ninner\n```\n````"
    assert texts(nested + "\n\nafter") == [nested, "after"]
    assert texts("```\n\n一段。\n\n两段。") == ["一段。", "两段。"]


def test_a_long_paragraph_is_cut_at_ends_of_sentences() -> None:
    source = "他说：“今天的雾很大，船不会来了。”我没有回答！" * 60
    pieces = texts(source)
    assert "".join(pieces) == source
    assert len(pieces) > 3
    assert all(piece.endswith(("”", "！")) for piece in pieces)
    english = "Dr. Smith met Mr. J. Brown at 3.14 p.m. sharp. They talked (e.g. about ships). " * 40
    assert all(piece.endswith(("sharp.", "ships).")) for piece in texts(english))


def test_long_code_is_cut_at_line_ends_only() -> None:
    lines = [f"value_{n} = compute({n}); print('done. Next')" for n in range(80)]
    pieces = texts("```\n" + "\n".join(lines) + "\n```")
    assert len(pieces) > 2
    assert [line for piece in pieces for line in piece.splitlines() if line != "```"] == lines


def test_text_without_any_punctuation_is_still_cut_and_no_emoji_is_torn() -> None:
    assert "".join(texts("雾" * 2000)) == "雾" * 2000
    family = "👩‍👩‍👧‍👦"
    assert all(piece.startswith("👩") for piece in texts(family * 300))


def test_what_says_nothing_is_left_out() -> None:
    assert texts("一。\n\n***\n\n二。\n\n---\n") == ["一。", "二。"]
    assert paragraphs("") == paragraphs(" \n\u3000\r\n") == []
    assert paragraphs("\ufeff你好") == [Paragraph(1, 3, "你好")]


@pytest.mark.parametrize("space", [chr(code) for code in range(0x10000) if chr(code).isspace()])
def test_no_white_space_of_any_script_stands_at_a_border(space: str) -> None:
    assert texts(f"{space}0{space}") == ["0"]


def test_a_limit_that_would_cut_words_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="at least 8"):
        paragraphs("text", max_tokens=3)
