"""Any LangChain runnable that takes messages, as a chat model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from homing.chat import Message
from homing.chat.openai import with_schema
from homing.errors import ChatError, HomingError, MissingExtra
from homing.legs import run_leg

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable


class LangChainLLM:
    """Calls `invoke` and `stream` of a runnable: a LangChain chat model, or a chain that begins with one.

    The schema, where one is asked for, is written into the conversation, because chains take no other way. A call that
    outlives its deadline is left to end by itself. Needs the extra `langchain`.
    """

    def __init__(self, runnable: Runnable[Any, Any], *, name: str = "") -> None:
        self._messages = _message_types()
        self._runnable = runnable
        self._name = name or runnable.get_name()

    @property
    def id(self) -> str:
        """`langchain/` and the name of the runnable."""
        return f"langchain/{self._name}"

    def complete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None, deadline: float | None = None
    ) -> str:
        """The text of the answer."""
        said = self._said(messages if schema is None else with_schema(messages, schema))

        def ask() -> str:
            with self._translated():
                return _text(self._runnable.invoke(said))

        if deadline is None:
            answer = ask()
        else:
            outcome = run_leg("chat", ask, deadline=deadline)
            if isinstance(outcome.error, ChatError):
                raise outcome.error
            if outcome.error is not None or outcome.value is None:
                raise ChatError(f"{self.id}: no answer within {deadline:g} s", details={"cause": "TIMEOUT"})
            answer = outcome.value
        if not answer.strip():
            raise ChatError(f"{self.id}: the answer has no text", details={"cause": "MALFORMED_ANSWER"})
        return answer

    def stream(self, messages: Sequence[Message], *, deadline: float | None = None) -> Iterator[str]:
        """The pieces of the answer as they come; the first that comes after the deadline ends it with an error."""
        end = None if deadline is None else time.monotonic() + deadline
        with self._translated():
            for chunk in self._runnable.stream(self._said(messages)):
                if end is not None and time.monotonic() > end:
                    raise ChatError(
                        f"{self.id}: the answer took longer than {deadline:g} s", details={"cause": "TIMEOUT"}
                    )
                if piece := _text(chunk):
                    yield piece

    def _said(self, messages: Sequence[Message]) -> list[Any]:
        return [
            self._messages[message.role](
                content=message.content if isinstance(message.content, str) else list(message.content)
            )
            for message in messages
        ]

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except HomingError:
            raise
        except Exception as error:
            # The words of other people's errors may hold a key; the error itself is kept as the cause.
            raise ChatError(
                f"{self.id}: the runnable raised {type(error).__name__}", details={"cause": "PROVIDER_UNAVAILABLE"}
            ) from error


def _message_types() -> dict[str, Callable[..., Any]]:
    try:
        from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
    except ImportError as error:
        raise MissingExtra("a LangChain model needs langchain-core: pip install 'homing[langchain]'") from error
    return {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}


def _text(answer: Any) -> str:
    """What a model (a message) or a chain (often a plain text) answered."""
    content = getattr(answer, "content", answer)
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)
    raise ChatError(
        f"the runnable answered a {type(answer).__name__}, not a message or a text; end the chain with a text",
        details={"cause": "MALFORMED_ANSWER"},
    )
