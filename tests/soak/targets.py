"""What is fuzzed: whatever the bytes and the texts, there is an answer, or an error of ours.

`test_fuzz.py` tries each for a moment, `python -m tests.soak.fuzz` for as long as it is told to.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import strategies as st

from homing.devices.parsing.parse import parse
from homing.errors import HomingError, StoreCorrupt
from homing.files.isolated import split_messages
from homing.ipc.framing import MessageReader, Received, Rejected
from homing.skills.skill_file import Unreadable, parse_skill
from homing.stores.postings import segment
from homing.text.keywords import extract_keywords
from homing.text.paragraphs import paragraphs
from homing.text.sentences import windows
from homing.text.terms import numbers_of
from homing.text.tokens import query_terms, spans, tokens

Check = Callable[..., None]
TARGETS: dict[str, tuple[Check, tuple[st.SearchStrategy[Any], ...]]] = {}
"""Each check by its name, with what it is given."""


def target(*given: st.SearchStrategy[Any]) -> Callable[[Check], Check]:
    """Registers a check that holds for whatever it is given."""

    def registered(check: Check) -> Check:
        TARGETS[check.__name__] = check, given
        return check

    return registered


PIECES = [
    *("灯塔", "打开", "除了", "卧室", "以外的", "灯", "不要", "燈塔", "の", "“", "”", "「", "：", "…", "26.5℃"),
    *("lamp", "turn off", "the", "LIGHTS", "a" * 300, "\u200b", "\ud800", "\u2028", "\0", "\r\n", "\n\n"),
    *("---", "```", "# ", "- ", "> ", ": ", "&a", "*a", "!!python/object", "{", "[", "%", "👩\u200d👧"),
    *("é" * 9, "e\u0301", "\u0301" * 300, "👩\u200d" * 99, "\ufe0f", "\u00ad", "\ufeff", "𠮷", "x\u0000y", "１２", "Ⅷ"),
]
texts = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=30).map("".join))


@target(texts, texts)
def the_tokenizer_takes_any_text(query: str, text: str) -> None:
    assert all(tokens(text))
    query_terms(query)
    for span in spans(query, text):
        assert 0 <= span.start < span.end <= len(text)


@target(texts)
def paragraphs_are_parts_of_the_text_in_order(text: str) -> None:
    at = 0
    for one in paragraphs(text):
        assert at <= one.start < one.end <= len(text)
        at = one.end


@target(texts, st.integers(20, 200))
def windows_cover_the_text_and_are_never_too_long(text: str, size: int) -> None:
    at, covered = 0, 0
    for one in windows(text, size=size, overlap=size // 5):
        assert at <= one.start < one.end <= len(text)
        assert text[one.start : one.end] == one.text
        assert one.end - one.start <= size
        assert not any(map(str.isalnum, text[covered : one.start]))
        at, covered = one.start, max(covered, one.end)
    assert not any(map(str.isalnum, text[covered:]))


@target(texts)
def keywords_are_few(query: str) -> None:
    found = extract_keywords(query)
    assert len(found) <= 10
    assert len(set(found)) == len(found)


@target(st.one_of(st.binary(max_size=300), texts.map(lambda text: f"---\n{text}".encode("utf-8", "surrogatepass"))))
def any_skill_file_is_read_or_called_unreadable(content: bytes) -> None:
    try:
        parse_skill(content, Path("/skills/any"))
    except Unreadable:
        return


@target(texts)
def the_device_parser_answers_or_refuses(text: str) -> None:
    try:
        parse(text)
    except HomingError:
        return


HEADERS = [
    b"Content-Length: 5\r\n\r\n",
    b"Content-Length: -1\r\n\r\n",
    b"Content-Length: 99999999999\r\n\r\n",
    b"{}\n",
    b"\r\n",
]


@target(st.lists(st.one_of(st.binary(max_size=40), st.sampled_from(HEADERS)), max_size=12).map(b"".join))
def any_stream_of_messages_comes_to_its_end(stream: bytes) -> None:
    reader = MessageReader(io.BytesIO(stream), 1_000)
    for _ in range(len(stream) + 2):
        read = reader.read()
        if read is None:
            return
        assert isinstance(read, Received | Rejected)
    pytest.fail("it goes on for ever")


def guarded(body: bytes) -> bytes:
    return crc32(body).to_bytes(4, "little") + body


@target(st.one_of(st.binary(max_size=120), st.binary(max_size=120).map(guarded)))
def a_segment_is_decoded_or_damaged(stored: bytes) -> None:
    for decode in (segment.unpack, segment.unpack_piece, lambda one: segment.unpack_keys([one])):
        try:
            decode(stored)
        except StoreCorrupt:
            continue


some_texts = st.dictionaries(st.integers(0, 50), st.lists(st.sampled_from(PIECES), max_size=9), max_size=9)


@target(some_texts, st.data())
def a_segment_that_lost_or_changed_a_byte_is_noticed(words: dict[int, list[str]], data: st.DataObject) -> None:
    built = segment.segment_of([(key, numbers_of(said)) for key, said in sorted(words.items())])
    pieces = [(one, segment.unpack_piece) for one in built.pieces()]
    for stored, decode in [(segment.pack(built.header), segment.unpack), *pieces]:
        decode(stored)
        at = data.draw(st.integers(0, len(stored) - 1))
        changed = bytearray(stored)
        changed[at] ^= data.draw(st.integers(1, 255))
        with pytest.raises(StoreCorrupt):
            decode(bytes(changed))
        with pytest.raises(StoreCorrupt):
            decode(stored[:at])


@target(st.binary(max_size=80))
def what_a_reader_of_files_says_is_not_believed(said: bytes) -> None:
    framed = len(said).to_bytes(8, "big") + said
    for stream in (said, framed):
        try:
            assert all(isinstance(one, dict) for one in split_messages(bytearray(stream), 1_000))
        except BrokenPipeError:
            continue
    assert list(split_messages(bytearray(len(b"{}").to_bytes(8, "big") + b"{}"), 9)) == [json.loads("{}")]
