"""The seam to a chat model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


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
