"""Chat models on an Ollama server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from homing.chat.http import ChatApi
from homing.chat.model import Message
from homing.errors import ChatError, InvalidArgument

OLLAMA = "http://localhost:11434"
KEEP_ALIVE = "30m"
"""Ollama unloads a model after five minutes; loading it again takes longer than any deadline here."""


class OllamaLLM:
    """`POST {base_url}/api/chat` with the schema as `format`."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str = "",
        base_url: str = OLLAMA,
        timeout: float = 30.0,
        keep_alive: str = KEEP_ALIVE,
    ) -> None:
        if not model.strip():
            raise InvalidArgument("ollama: a chat model is needed, as in qwen3:4b")
        self._model = model
        self._keep_alive = keep_alive
        self._api = ChatApi("ollama", base_url, api_key=api_key, timeout=timeout)

    @property
    def id(self) -> str:
        """Provider and model."""
        return f"ollama/{self._model}"

    def complete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None, deadline: float | None = None
    ) -> str:
        """The text of the answer."""
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "stream": False,
            "keep_alive": self._keep_alive,
            "options": {"temperature": 0},
        }
        if schema is not None:
            body["format"] = schema
        answer = self._api.post("api/chat", body, deadline=deadline)
        try:
            content = answer["message"]["content"]
        except (KeyError, TypeError):
            content = None
        if not isinstance(content, str) or not content.strip():
            raise ChatError(f"{self.id}: the answer has no text", details={"cause": "MALFORMED_ANSWER"})
        return content

    def close(self) -> None:
        """Closes the connections."""
        self._api.close()
