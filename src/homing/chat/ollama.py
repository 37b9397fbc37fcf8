"""Chat models on an Ollama server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from homing.chat import Message
from homing.chat.http import HttpChat
from homing.errors import InvalidArgument

OLLAMA = "http://localhost:11434"
KEEP_ALIVE = "30m"
"""Ollama unloads a model after five minutes; loading it again takes longer than any deadline here."""


class OllamaLLM(HttpChat):
    """`POST {base_url}/api/chat` with the schema as `format`."""

    provider = "ollama"
    example = "qwen3:4b"

    def __init__(
        self,
        model: str,
        *,
        api_key: str = "",
        base_url: str = OLLAMA,
        timeout: float = 30.0,
        keep_alive: str = KEEP_ALIVE,
    ) -> None:
        super().__init__(model, base_url, api_key=api_key, timeout=timeout)
        self._keep_alive = keep_alive

    def complete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None, deadline: float | None = None
    ) -> str:
        """The text of the answer."""
        body = self._body(messages, stream=False)
        if schema is not None:
            body["format"] = schema
        return self._post("api/chat", body, deadline, "message", "content")

    def stream(self, messages: Sequence[Message], *, deadline: float | None = None) -> Iterator[str]:
        """The pieces of the answer as they come (one JSON object per line)."""
        for line in self._lines("api/chat", self._body(messages, stream=True), deadline):
            event = self._event(line)
            try:
                piece = str(event.get("message", {}).get("content") or "")
            except AttributeError:
                raise self._malformed_piece() from None
            if piece:
                yield piece
            if event.get("done"):
                return
        raise self._broken_off()

    def _body(self, messages: Sequence[Message], *, stream: bool) -> dict[str, Any]:
        return {
            "model": self._model,
            "messages": [_said(message) for message in messages],
            "stream": stream,
            "keep_alive": self._keep_alive,
            "options": {"temperature": 0},
        }


def _said(message: Message) -> dict[str, Any]:
    """A message as Ollama takes it: the text, and images as base64 beside it."""
    said: dict[str, Any] = {"role": message.role, "content": message.text}
    parts = () if isinstance(message.content, str) else message.content
    urls = [str(part["image_url"]["url"]) for part in parts if part.get("type") == "image_url"]
    if any(not url.startswith("data:") for url in urls):
        raise InvalidArgument("ollama takes images as data (data:image/png;base64,…), not as addresses")
    if urls:
        said["images"] = [url.partition(",")[2] for url in urls]
    return said
