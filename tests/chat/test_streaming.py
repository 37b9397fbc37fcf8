"""Answers that come piece by piece, over the wire formats of the providers."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any

import pytest

from homing.chat import Message, OllamaLLM, StreamingChatModel
from homing.errors import ChatError, InvalidArgument
from tests.chat.adapters import HELLO, KEY, MAKERS
from tests.chat.loopback import ChatServer

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}


@pytest.mark.parametrize(
    "text", ["你好，世界！", "plain words", "line\u2028separator and\x85more", "emoji 👩‍👩‍👧 mixed 混合"]
)
def test_the_pieces_together_are_the_answer(server: ChatServer, model: Any, text: str) -> None:
    server.answers = [text]
    pieces = list(model.stream(HELLO))
    assert len(pieces) > 1
    assert "".join(pieces) == text
    assert server.requests[0]["stream"] is True
    assert isinstance(model, StreamingChatModel)


def test_the_first_piece_is_there_before_the_last_is_sent(server: ChatServer, model: Any) -> None:
    rest = threading.Event()
    server.answers, server.second_half = ["一二三四五六七八九十"], rest
    stream = model.stream(HELLO)
    assert next(stream) == "一二"
    rest.set()
    assert "".join(stream) == "三四五六七八九十"


def test_an_answer_that_breaks_off_says_so_after_what_came(server: ChatServer, model: Any) -> None:
    server.answers, server.breaks_off = ["一二三四"], True
    stream = model.stream(HELLO)
    assert [next(stream), next(stream)] == ["一二", "三四"]
    with pytest.raises(ChatError, match="broke off"):
        next(stream)


def test_a_refused_stream_is_an_error_without_the_key(server: ChatServer, model: Any) -> None:
    server.answers = [429]
    with pytest.raises(ChatError) as caught:
        next(model.stream(HELLO))
    assert caught.value.details["cause"] == "RATE_LIMITED"
    assert KEY not in str(caught.value)


def test_a_deadline_ends_a_stream_that_goes_on(server: ChatServer, model: Any) -> None:
    server.answers, server.piece_delay = ["一二三四五六七八九十" * 20], 0.05
    with pytest.raises(ChatError) as caught:
        list(model.stream(HELLO, deadline=0.3))
    assert caught.value.details["cause"] == "TIMEOUT"


def test_stopping_early_leaves_the_model_usable(server: ChatServer, model: Any) -> None:
    server.answers, server.piece_delay = ["一二三四五六七八九十", "好"], 0.02
    stream = model.stream(HELLO)
    next(stream)
    stream.close()
    assert "".join(model.stream(HELLO)) == "好"


def test_content_parts_reach_openai_as_they_are_and_ollama_in_its_own_form(server: ChatServer) -> None:
    parts = [Message("user", [{"type": "text", "text": "这是什么"}, PICTURE])]
    for name in MAKERS:
        with closing(MAKERS[name](server.url)) as model:
            model.complete(parts)
    openai, dashscope, ollama = (body["messages"][0] for body in server.requests)
    assert openai["content"] == dashscope["content"] == [{"type": "text", "text": "这是什么"}, PICTURE]
    assert ollama == {"role": "user", "content": "这是什么", "images": ["aGVsbG8="]}


def test_ollama_refuses_the_address_of_an_image() -> None:
    far = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    with closing(OllamaLLM("m")) as model, pytest.raises(InvalidArgument, match="images as data"):
        model.complete([Message("user", [far])])
