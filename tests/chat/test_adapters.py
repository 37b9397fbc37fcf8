"""The chat adapters against a server that speaks their wire formats and checks what it is sent."""

from __future__ import annotations

import logging
import traceback
from contextlib import closing
from typing import Any

import pytest

from homing.chat import ChatModel, OllamaLLM, OpenAILLM
from homing.errors import ChatError, InvalidArgument
from tests.chat.adapters import HELLO, KEY, MAKERS
from tests.chat.loopback import ChatServer

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def test_every_adapter_is_a_chat_model(model: Any) -> None:
    assert isinstance(model, ChatModel)
    assert "/" in model.id


def test_the_conversation_is_sent_and_the_text_comes_back(server: ChatServer, model: Any) -> None:
    server.answers = ["你好！"]
    assert model.complete(HELLO) == "你好！"
    assert server.requests[0]["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "你好"},
    ]


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (401, "INVALID_KEY"),
        (404, "MODEL_UNKNOWN"),
        (429, "RATE_LIMITED"),
        (500, "PROVIDER_UNAVAILABLE"),
        (418, "REFUSED"),
    ],
)
def test_a_refusal_says_what_it_means_and_never_shows_the_key(
    status: int, cause: str, server: ChatServer, model: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = [status] * 2
    with caplog.at_level(logging.DEBUG), pytest.raises(ChatError) as caught:
        model.complete(HELLO)
    assert caught.value.details["cause"] == cause
    shown = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(model) + repr(vars(model))
    assert KEY not in shown


def test_a_wrong_key_is_not_echoed_even_where_the_server_does(server: ChatServer) -> None:
    server.key = "another"
    with closing(OpenAILLM("m", api_key=KEY, base_url=server.url + "/v1")) as model, pytest.raises(ChatError) as caught:
        model.complete(HELLO)
    assert caught.value.details["cause"] == "INVALID_KEY"
    assert KEY not in str(caught.value)


def test_a_deadline_ends_the_call(server: ChatServer, model: Any) -> None:
    server.delay = 30.0
    with pytest.raises(ChatError) as caught:
        model.complete(HELLO, deadline=0.1)
    assert caught.value.details["cause"] == "TIMEOUT"
    with pytest.raises(ChatError) as caught:
        model.complete(HELLO, deadline=0.0)
    assert caught.value.details["cause"] == "TIMEOUT"


def test_nobody_there_is_unavailable() -> None:
    with closing(OllamaLLM("m", base_url="http://127.0.0.1:9")) as model, pytest.raises(ChatError) as caught:
        model.complete(HELLO)
    assert caught.value.details["cause"] == "PROVIDER_UNAVAILABLE"


@pytest.mark.parametrize("text", ["", "   "])
def test_an_empty_answer_is_malformed(text: str, server: ChatServer, model: Any) -> None:
    server.answers = [text]
    with pytest.raises(ChatError) as caught:
        model.complete(HELLO)
    assert caught.value.details["cause"] == "MALFORMED_ANSWER"


def test_openai_and_dashscope_send_a_strict_json_schema(server: ChatServer) -> None:
    for name in ("openai", "dashscope"):
        with closing(MAKERS[name](server.url)) as model:
            model.complete(HELLO, schema=SCHEMA)
        form = server.requests[-1]["response_format"]
        assert form == {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}}
    assert server.paths == ["/v1/chat/completions", "/compatible-mode/v1/chat/completions"]


def test_dashscope_is_told_not_to_think(server: ChatServer) -> None:
    with closing(MAKERS["dashscope"](server.url)) as model:
        model.complete(HELLO)
    assert server.requests[0]["enable_thinking"] is False
    assert server.requests[0]["model"] == "qwen-flash"


def test_ollama_sends_the_schema_as_format_and_keeps_the_model_loaded(server: ChatServer) -> None:
    with closing(MAKERS["ollama"](server.url)) as model:
        model.complete(HELLO, schema=SCHEMA)
    body = server.requests[0]
    assert (body["format"], body["stream"], body["keep_alive"]) == (SCHEMA, False, "30m")
    assert server.paths == ["/api/chat"]


def test_a_server_without_schemas_is_asked_for_plain_json_from_then_on(server: ChatServer) -> None:
    server.refuses_schemas = True
    with closing(MAKERS["openai"](server.url)) as model:
        model.complete(HELLO, schema=SCHEMA)
        model.complete(HELLO, schema=SCHEMA)
    forms = [body["response_format"]["type"] for body in server.requests]
    assert forms == ["json_schema", "json_object", "json_object"]
    assert '"required"' in server.requests[1]["messages"][0]["content"]


@pytest.mark.parametrize("url", ["localhost:11434", "ftp://x", "http://user:pass@host", "", "http://h/?key=1"])
def test_a_base_url_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(InvalidArgument, match="base_url"):
        OpenAILLM("m", base_url=url)


def test_a_model_without_a_name_is_refused_at_once() -> None:
    for maker in (OpenAILLM, OllamaLLM):
        with pytest.raises(InvalidArgument):
            maker(" ")


def test_a_key_with_a_line_break_is_refused_without_showing_it() -> None:
    with pytest.raises(InvalidArgument) as caught:
        OpenAILLM("m", api_key="sk-a\nb")
    assert "sk-a" not in str(caught.value)
