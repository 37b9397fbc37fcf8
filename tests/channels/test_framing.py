"""Where messages end: both framings, and every way to get it wrong."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.channels.envelope import as_json
from homing.ipc.framing import Framing, MessageReader, Received, Rejected, framed
from homing.ipc.rpc import ProtocolFault, id_at_head, read_call

MOST = 1000


def read_all(data: bytes, most: int = MOST) -> list[Received | Rejected]:
    reader = MessageReader(io.BytesIO(data), most)
    found: list[Received | Rejected] = []
    while (message := reader.read()) is not None:
        found.append(message)
    return found


def header(body: bytes) -> bytes:
    return framed(body, "headers")


def test_lines_and_headers_may_be_mixed() -> None:
    one, two, three = b'{"a":1}', '{"b":"灯塔 😀"}'.encode(), b'{"c":3}'
    data = one + b"\n" + header(two) + b"\r\n" + three + b"\r\n\n" + header(one)
    found = read_all(data)
    assert [json.loads(one.body) for one in found if isinstance(one, Received)] == [
        {"a": 1},
        {"b": "灯塔 😀"},
        {"c": 3},
        {"a": 1},
    ]
    assert [one.framing for one in found if isinstance(one, Received)] == ["lines", "headers", "lines", "headers"]


def test_headers_are_read_as_editors_write_them() -> None:
    body = b'{"a":\n 1}'
    data = b"content-length:  %d \r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n%s" % (
        len(body),
        body,
    )
    assert read_all(data) == [Received(body, "headers")]


def test_a_byte_order_mark_and_a_missing_line_end_do_no_harm() -> None:
    assert read_all(b'\xef\xbb\xbf{"a":1}') == [Received(b'{"a":1}', "lines")]


def test_a_line_that_is_too_long_is_passed_over_and_the_next_is_read() -> None:
    long = b'{"jsonrpc":"2.0","id":7,"method":"x","params":"' + b"x" * 300_000 + b'"}'
    rejected, following = read_all(long + b'\n{"a":1}\n')
    assert isinstance(rejected, Rejected)
    assert id_at_head(rejected.head) == 7
    assert following == Received(b'{"a":1}\n', "lines")


def test_a_body_that_is_too_long_is_passed_over_and_the_next_is_read() -> None:
    long = b'{"id":"a-1","jsonrpc":"2.0","params":"' + b"x" * 300_000 + b'"}'
    rejected, following = read_all(header(long) + header(b"{}"))
    assert isinstance(rejected, Rejected)
    assert id_at_head(rejected.head) == "a-1"
    assert following == Received(b"{}", "headers")


@pytest.mark.parametrize(
    "head", [b'{"params":{"id":1}', b'{"method":"x","id":1,', b'{"id":1.5,', b'{"id":"a\\"b",', b""]
)
def test_an_id_is_not_guessed(head: bytes) -> None:
    assert id_at_head(head) is None


@pytest.mark.parametrize(
    "garbage",
    [
        b"hello\n",
        b"\x00\xff\xfe\x01\n",
        b"Content-Length: many\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Type: text/plain\r\n\r\n",
        b"Content-Length: 5\r\nX-Other: 1\r\n",
        b"Content-Type: a\r\n" * 20,
        b"GET / HTTP/1.1\r\n",
        b"Warning: a library printed this\n",
    ],
)
def test_garbage_is_reported_and_what_follows_is_read(garbage: bytes) -> None:
    *rejected, last = read_all(garbage + b'\n{"a":1}\n')
    assert rejected
    assert all(isinstance(one, Rejected) for one in rejected)
    assert last == Received(b'{"a":1}\n', "lines")


def test_half_a_message_at_the_end_is_dropped() -> None:
    assert read_all(b'Content-Length: 100\r\n\r\n{"a":') == []
    [half] = read_all(b'{"jsonrpc":"2.0","id":1,"meth')
    assert isinstance(half, Received)
    with pytest.raises(ProtocolFault, match="not JSON"):
        read_call(half.body)


@given(st.binary(max_size=300))
def test_no_bytes_at_all_can_stop_the_reader(data: bytes) -> None:
    for message in read_all(data, most=50):
        if isinstance(message, Received):
            try:
                read_call(message.body)
            except ProtocolFault as fault:
                as_json(fault.answer())


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()), st.sampled_from(["lines", "headers"]))
def test_what_is_sent_is_read(message: dict[str, object], framing: Framing) -> None:
    body = as_json(message)
    [received] = read_all(framed(body, framing), most=100_000)
    assert isinstance(received, Received)
    assert json.loads(received.body) == message


def test_half_a_surrogate_pair_can_be_sent() -> None:
    assert json.loads(as_json({"text": "\ud83d"})) == {"text": "\ud83d"}


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b'[{"jsonrpc":"2.0","id":1,"method":"x"}]',
        b"{}",
        b'{"jsonrpc":"1.0","id":1,"method":"x"}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1,"method":5}',
        b'{"jsonrpc":"2.0","id":true,"method":"x"}',
        b'{"jsonrpc":"2.0","id":null,"method":"x"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"x"}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":NaN}',
        b'{"a":' * 200_000,
        b"[" * 200_000,
        b'{"\xff\xfe":1}',
        b"{",
    ],
)
def test_what_is_not_a_request_is_a_fault_with_a_number_and_a_code(body: bytes) -> None:
    with pytest.raises(ProtocolFault) as fault:
        read_call(body)
    answer = fault.value.answer()
    assert answer["error"]["code"] in (-32700, -32600)
    assert answer["error"]["data"]["code"] == "INVALID_ARGUMENT"
