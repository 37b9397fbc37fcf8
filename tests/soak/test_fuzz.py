"""Whatever the bytes and the texts: an answer, or an error of ours. Seconds here, an hour with HOMING_SOAK=1."""

from __future__ import annotations

import io
import json
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from homing.devices.parsing.parse import parse
from homing.errors import HomingError, StoreCorrupt
from homing.files.isolated import split_messages
from homing.ipc.framing import MessageReader, Received, Rejected
from homing.skills.skill_file import Unreadable, parse_skill
from homing.stores.postings import segment
from homing.text.paragraphs import paragraphs
from homing.text.tokens import query_terms, spans, tokens
from tests.effort import times

full = settings(
    max_examples=times(60, in_full=200_000), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
PIECES = [
    *("灯塔", "打开", "除了", "卧室", "以外的", "灯", "不要", "燈塔", "の", "“", "”", "「", "：", "…", "26.5℃"),
    *("lamp", "turn off", "the", "LIGHTS", "a" * 300, "\u200b", "\ud800", "\u2028", "\0", "\r\n", "\n\n"),
    *("---", "```", "# ", "- ", "> ", ": ", "&a", "*a", "!!python/object", "{", "[", "%", "👩\u200d👧"),
]
texts = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=30).map("".join))


@full
@given(texts, texts)
def test_the_tokenizer_takes_any_text(query: str, text: str) -> None:
    assert all(tokens(text))
    query_terms(query)
    for span in spans(query, text):
        assert 0 <= span.start < span.end <= len(text)


@full
@given(texts)
def test_paragraphs_are_parts_of_the_text_in_order(text: str) -> None:
    at = 0
    for one in paragraphs(text):
        assert at <= one.start < one.end <= len(text)
        at = one.end


@full
@given(st.one_of(st.binary(max_size=300), texts.map(lambda text: f"---\n{text}".encode("utf-8", "surrogatepass"))))
def test_any_skill_file_is_read_or_called_unreadable(content: bytes) -> None:
    try:
        parse_skill(content, Path("/skills/any"))
    except Unreadable:
        return


@full
@given(texts)
def test_the_device_parser_answers_or_refuses(text: str) -> None:
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


@full
@given(st.lists(st.one_of(st.binary(max_size=40), st.sampled_from(HEADERS)), max_size=12).map(b"".join))
def test_any_stream_of_messages_comes_to_its_end(stream: bytes) -> None:
    reader = MessageReader(io.BytesIO(stream), 1_000)
    for _ in range(len(stream) + 2):
        read = reader.read()
        if read is None:
            return
        assert isinstance(read, Received | Rejected)
    pytest.fail("it goes on for ever")


def guarded(body: bytes) -> bytes:
    return crc32(body).to_bytes(4, "little") + body


@full
@given(st.one_of(st.binary(max_size=120), st.binary(max_size=120).map(guarded)))
def test_a_segment_is_decoded_or_damaged(stored: bytes) -> None:
    for decode in (segment.unpack, segment.unpack_piece, lambda one: segment.unpack_keys([one])):
        try:
            decode(stored)
        except StoreCorrupt:
            continue


some_texts = st.dictionaries(st.integers(0, 50), st.lists(st.sampled_from(PIECES), max_size=9), max_size=9)


@full
@given(some_texts, st.data())
def test_a_segment_that_lost_or_changed_a_byte_is_noticed(words: dict[int, list[str]], data: st.DataObject) -> None:
    built = segment.build(sorted(words.items()))
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


@full
@given(st.binary(max_size=80))
def test_what_a_reader_of_files_says_is_not_believed(said: bytes) -> None:
    framed = len(said).to_bytes(8, "big") + said
    for stream in (said, framed):
        try:
            assert all(isinstance(one, dict) for one in split_messages(bytearray(stream), 1_000))
        except BrokenPipeError:
            continue
    assert list(split_messages(bytearray(len(b"{}").to_bytes(8, "big") + b"{}"), 9)) == [json.loads("{}")]
