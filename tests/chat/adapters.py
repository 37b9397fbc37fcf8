"""The adapters of chat models, made for a server on loopback, and what is said to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from homing.chat import DashScopeLLM, Message, OllamaLLM, OpenAILLM

KEY = "sk-very-secret-0123456789"
HELLO = [Message("system", "be brief"), Message("user", "你好")]
MAKERS: dict[str, Callable[[str], Any]] = {
    "openai": lambda url: OpenAILLM("m", api_key=KEY, base_url=url + "/v1"),
    "dashscope": lambda url: DashScopeLLM(api_key=KEY, base_url=url + "/compatible-mode/v1"),
    "ollama": lambda url: OllamaLLM("m", api_key=KEY, base_url=url),
}
