"""A LangChain runnable as a chat model, on real LangChain parts."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from homing.chat import Message, StreamingChatModel
from homing.errors import ChatError
from tests.chat.adapters import HELLO

pytest.importorskip("langchain_core")

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda

from homing.chat.langchain import LangChainLLM

pytestmark = pytest.mark.slow


def scripted(*answers: str) -> LangChainLLM:
    return LangChainLLM(GenericFakeChatModel(messages=iter(AIMessage(content=answer) for answer in answers)))


def runnable(call: Callable[[Any], Any]) -> LangChainLLM:
    return LangChainLLM(RunnableLambda(call), name="mine")


def test_a_chat_model_answers_whole_and_in_pieces() -> None:
    model = scripted("你好 世界", "one two three")
    assert isinstance(model, StreamingChatModel)
    assert model.complete(HELLO) == "你好 世界"
    pieces = list(model.stream(HELLO))
    assert len(pieces) > 1
    assert "".join(pieces) == "one two three"


def test_a_chain_that_ends_in_a_text_is_a_chat_model_too() -> None:
    chain = GenericFakeChatModel(messages=iter([AIMessage(content="好")])) | StrOutputParser()
    assert LangChainLLM(chain).complete(HELLO) == "好"


def test_roles_and_parts_arrive_as_messages_of_langchain() -> None:
    seen: list[Any] = []
    parts = [{"type": "text", "text": "看"}]

    def note(messages: Any) -> str:
        seen.extend(messages)
        return "ok"

    runnable(note).complete([*HELLO, Message("user", parts)])
    assert isinstance(seen[0], SystemMessage)
    assert [message.content for message in seen] == ["be brief", "你好", parts]


def test_a_schema_is_written_into_the_conversation() -> None:
    echo = runnable(lambda messages: str(messages[0].content))
    assert '"required": ["a"]' in echo.complete(HELLO, schema={"type": "object", "required": ["a"]})


def test_an_error_of_the_runnable_is_a_chat_error_without_its_words() -> None:
    def fail(messages: Any) -> str:
        raise ValueError("key sk-secret was rejected")

    for ask in (lambda model: model.complete(HELLO), lambda model: list(model.stream(HELLO))):
        with pytest.raises(ChatError, match="mine: the runnable raised ValueError") as caught:
            ask(runnable(fail))
        assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(("answer", "cause"), [("  ", "MALFORMED_ANSWER"), (17, "MALFORMED_ANSWER")])
def test_an_answer_without_text_is_malformed(answer: Any, cause: str) -> None:
    with pytest.raises(ChatError) as caught:
        runnable(lambda messages: answer).complete(HELLO)
    assert caught.value.details["cause"] == cause


def test_a_deadline_is_kept() -> None:
    over = threading.Event()

    def late(messages: Any) -> str:
        assert over.wait(600)
        return "late"

    slow = runnable(late)
    with pytest.raises(ChatError) as caught:
        slow.complete(HELLO, deadline=0.1)
    assert caught.value.details["cause"] == "TIMEOUT"
    over.set()
    assert slow.complete(HELLO, deadline=600) == "late"


def test_without_langchain_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['langchain_core.messages'] = None\n"
        "from homing.chat.langchain import LangChainLLM\n"
        "from homing.errors import MissingExtra\n"
        "try:\n    LangChainLLM(None)\nexcept MissingExtra as error:\n    import json; print(json.dumps(str(error)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "homing[langchain]" in json.loads(done.stdout)
