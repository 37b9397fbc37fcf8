"""Chunks slice the stored text exactly, whatever was done to it, in characters and in UTF-16 units."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from homing.documents import DocumentService, editing, layout
from homing.documents.editing import edit
from homing.documents.layout import Block, Piece, Stored, split
from tests.documents.novel import Library, paragraphs
from tests.effort import times

PIECES = [
    "第一章 雨夜",
    "# Heading",
    "“好。”",
    "“走吧，天快亮了。”",
    "他没有回答。",
    "A plain English sentence about the harbour.",
    "emoji 😀🏮 和汉字 𠀀𠮷 混在一起。",
    "| a | b |\n| 1 | 2 |",
    "- one\n- two\n- three",
    "***",
    "---",
    "```\ncode fence\n```",
    "　　全角缩进的一段话，说了一些事情。",
    "很长的一段。" * 80,
    "\ud83d half of a pair",
    *paragraphs(6),
]
GAPS = ["\n\n", "\n", "\r\n\r\n", "\n \n", "\n\n\n\n", "\n　　", "\u2028"]

texts = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(GAPS)), max_size=12).map(
    lambda parts: "".join(piece + gap for piece, gap in parts)
)
Put = tuple[float, int, str]
edits = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 40), st.sampled_from([*PIECES, *GAPS, "", "字", "x"])), max_size=4
)


def stored_after(stored: Stored, text: str, following: int) -> tuple[Stored, int]:
    """What the database would hold after an edit."""
    change = edit(stored, text, following)
    back = len(stored.blocks) - change.rewrite.back
    between = [Block(0, len(block.text), block.wide) for block in change.rewrite.between]
    held = [block.chunks for block in change.rewrite.between]
    blocks = (*stored.blocks[: change.rewrite.front], *between, *stored.blocks[back:])
    chunks = (*stored.chunks[: change.rewrite.front], *held, *stored.chunks[back:])
    return Stored(text, blocks, chunks), change.following


@settings(max_examples=times(40, in_full=1_000), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(texts, st.integers(1, 9)), min_size=1, max_size=3), st.lists(edits, min_size=1, max_size=5))
# A rule at the start and one far below it make front matter of all between them.
@pytest.mark.slow
@example([("---\n\n", 1), ("---\n\n", 1)], [[]])
@example([("---\n\n", 1), ("", 9)], [[(0.9, 0, "\n\n---\n\n")]])
def test_an_edit_gives_what_cutting_the_whole_text_gives(parts: list[tuple[str, int]], rounds: list[list[Put]]) -> None:
    text = "".join(part * times + "\n\n".join(paragraphs(20, seed=times)) + "\n\n" for part, times in parts)
    with pytest.MonkeyPatch.context() as patched:
        # Small blocks, so that a short text has many of them.
        patched.setattr(layout, "MIN_BLOCK", 150)
        patched.setattr(layout, "MAX_BLOCK", 600)
        patched.setattr(editing, "STRETCH", 300)
        stored, following = stored_after(Stored(), text, 0)
        for changes in rounds:
            for place, cut, put in changes:
                at = int(place * len(text))
                text = text[:at] + put + text[at + cut :]
            stored, following = stored_after(stored, text, following)
            placed = stored.placed()
            assert [Piece(one.start, one.end, one.digest) for one in placed] == split(text)
            assert len({one.number for one in placed}) == len(placed)
            assert sum(block.length for block in stored.blocks) == len(text)


@settings(max_examples=times(8, in_full=100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(texts, min_size=1, max_size=5))
def test_offsets_slice_the_stored_text(versions: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(Library(Path(folder), None)) as library:
        for text in versions:
            library.documents.save("p", "d", text)
            assert library.documents.text("p", "d") == text
            units = text.encode("utf-16-le", "surrogatepass")
            wide = library.documents.chunks("p", "d", offsets="utf-16")
            for chunk, other in zip(library.documents.chunks("p", "d"), wide, strict=True):
                assert text[chunk.start_offset : chunk.end_offset] == chunk.text
                sliced = units[2 * other.start_offset : 2 * other.end_offset].decode("utf-16-le", "surrogatepass")
                assert sliced == chunk.text


def test_hits_slice_the_text_too(documents: DocumentService) -> None:
    text = "\n\n".join(["😀 开头有表情。", *paragraphs(500), "灯塔🏮在远处亮着，𠮷先生看见了灯塔。"])
    documents.save("p", "d", text)
    [hit] = documents.search("p", "灯塔", mode="keyword")
    assert text[hit.metadata["start_offset"] : hit.metadata["end_offset"]] == hit.text
    assert [text[start:end] for start, end in hit.metadata["highlights"]] == ["灯塔", "灯塔"]
    snippet = hit.metadata["snippet"]
    assert [snippet[start:end] for start, end in hit.metadata["snippet_highlights"]] == ["灯塔", "灯塔"]
    [hit] = documents.search("p", "灯塔", mode="keyword", offsets="utf-16")
    units = text.encode("utf-16-le")
    places = [*hit.metadata["highlights"], [hit.metadata["start_offset"], hit.metadata["end_offset"]]]
    assert [units[2 * a : 2 * b].decode("utf-16-le") for a, b in places] == ["灯塔", "灯塔", hit.text]
    units = hit.metadata["snippet"].encode("utf-16-le")
    assert [units[2 * a : 2 * b].decode("utf-16-le") for a, b in hit.metadata["snippet_highlights"]] == ["灯塔", "灯塔"]


def test_a_very_long_paragraph_is_split(documents: DocumentService) -> None:
    documents.save("p", "d", "他一直往前走，没有停下来。" * 400)
    chunks = documents.chunks("p", "d")
    assert len(chunks) > 10
    assert all(len(one.text) <= 256 for one in chunks)


def test_headings_and_short_lines_of_dialogue_go_with_what_follows(documents: DocumentService) -> None:
    documents.save(
        "p",
        "d",
        "# 第三章\n\n天黑了下来，码头上只剩一盏灯。\n\n“走吗？”\n\n“再等等。”他望着江面说，船一定会来的，不会错。",
    )
    assert [one.text.replace("\n\n", "|") for one in documents.chunks("p", "d")] == [
        "# 第三章|天黑了下来，码头上只剩一盏灯。",
        "“走吗？”|“再等等。”他望着江面说，船一定会来的，不会错。",
    ]
