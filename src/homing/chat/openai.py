"""OpenAI and every server that speaks its chat API (vLLM, LM Studio, SiliconFlow, DeepSeek …)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from homing.chat import Message
from homing.chat.http import HttpChat
from homing.errors import ChatError

OPENAI = "https://api.openai.com/v1"
DASHSCOPE = "https://dashscope.aliyuncs.com/compatible-mode/v1"


class OpenAILLM(HttpChat):
    """`POST {base_url}/chat/completions` with `response_format: json_schema`.

    A server that refuses the schema (HTTP 400) is asked once more for a plain JSON object with the schema in the
    prompt, and from then on only so.
    """

    provider = "openai"
    extra: ClassVar[Mapping[str, Any]] = {}
    """What one provider's requests have beyond the API they share."""

    def __init__(self, model: str, *, api_key: str = "", base_url: str = OPENAI, timeout: float = 10.0) -> None:
        super().__init__(model, base_url, api_key=api_key, timeout=timeout)
        self._plain_json = False

    def complete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None, deadline: float | None = None
    ) -> str:
        """The text of the first choice."""
        if schema is not None and not self._plain_json:
            try:
                return self._ask(messages, _strict(schema), deadline)
            except ChatError as error:
                if error.details.get("cause") != "REFUSED":
                    raise
                self._plain_json = True
        if schema is not None:
            return self._ask(with_schema(messages, schema), {"type": "json_object"}, deadline)
        return self._ask(messages, None, deadline)

    def stream(self, messages: Sequence[Message], *, deadline: float | None = None) -> Iterator[str]:
        """The pieces of the first choice as they come (server-sent events)."""
        for line in self._lines("chat/completions", {**self._body(messages), "stream": True}, deadline):
            # Lines that begin otherwise are comments and event names; servers send them to keep the connection alive.
            if not line.startswith("data:"):
                continue
            data = line.removeprefix("data:").strip()
            if data == "[DONE]":
                return
            if piece := self._piece(data):
                yield piece
        raise self._broken_off()

    def _body(self, messages: Sequence[Message]) -> dict[str, Any]:
        said = [{"role": message.role, "content": message.content} for message in messages]
        return {"model": self._model, "messages": said, "temperature": 0, **self.extra}

    def _ask(self, messages: Sequence[Message], form: Mapping[str, Any] | None, deadline: float | None) -> str:
        body = self._body(messages)
        if form is not None:
            body["response_format"] = form
        return self._post("chat/completions", body, deadline, "choices", 0, "message", "content")

    def _piece(self, data: str) -> str:
        """The text that one event brings; empty for those that bring none (a role, a count of tokens)."""
        event = self._event(data)
        try:
            choices = event["choices"]
            return str(choices[0]["delta"].get("content") or "") if choices else ""
        except (KeyError, IndexError, TypeError, AttributeError):
            raise self._malformed_piece() from None


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}


def with_schema(messages: Sequence[Message], schema: Mapping[str, Any]) -> list[Message]:
    """The conversation with the schema written into it, for models that take no schema."""
    text = f"Answer with one JSON object of this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}"
    return [Message("system", text), *messages]


class DashScopeLLM(OpenAILLM):
    """`qwen-flash` and its like; thinking is switched off, because a thinking model answers in no schema.

    Outside mainland China pass `base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1"`.
    """

    provider = "dashscope"
    extra: ClassVar[Mapping[str, Any]] = {"enable_thinking": False}

    def __init__(
        self,
        model: str = "qwen-flash",
        *,
        api_key: str = "",
        base_url: str = DASHSCOPE,
        timeout: float = 10.0,
    ) -> None:
        super().__init__(model, api_key=api_key, base_url=base_url, timeout=timeout)
