"""Chat models that answer in a JSON schema: one protocol, one file per API.

The adapters are imported when they are first used: who only names the protocol does not pay for an HTTP client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from homing.lazy import names_from

if TYPE_CHECKING:
    from homing.chat.ollama import OllamaLLM
    from homing.chat.openai import DashScopeLLM, OpenAILLM

__all__ = ["ChatModel", "DashScopeLLM", "Message", "OllamaLLM", "OpenAILLM", "StreamingChatModel"]

Role = Literal["system", "user", "assistant"]
Part = Mapping[str, Any]
"""A piece of a message: `{"type": "text", "text": …}` or `{"type": "image_url", "image_url": {"url": …}}`."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation: a text, or several parts."""

    role: Role
    content: str | Sequence[Part]

    @property
    def text(self) -> str:
        """What it says in words; images and other parts say none."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(str(part["text"]) for part in self.content if part.get("type") == "text" and "text" in part)


@runtime_checkable
class ChatModel(Protocol):
    """Completes a conversation.

    With a `schema` the answer is meant to be a JSON text of that schema; the model may break it, so the caller checks.
    `deadline` bounds the whole call in seconds. Safe to call from several threads. Raises only ChatError.
    """

    @property
    def id(self) -> str:
        """Provider and model: `openai/gpt-5-mini`."""

    def complete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None, deadline: float | None = None
    ) -> str:
        """The text of the answer."""


@runtime_checkable
class StreamingChatModel(ChatModel, Protocol):
    """A chat model that can also answer piece by piece."""

    def stream(self, messages: Sequence[Message], *, deadline: float | None = None) -> Iterator[str]:
        """The pieces of the answer as they come; together they are its text.

        The request is sent when the first piece is asked for. An answer that breaks off raises ChatError after what
        came. Whoever stops reading early closes the iterator, and with it the connection.
        """


__getattr__ = names_from(__name__, ollama="OllamaLLM", openai="DashScopeLLM OpenAILLM")
