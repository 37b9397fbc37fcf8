"""Chat models that answer in a JSON schema: one protocol, one file per provider.

The adapters are imported when they are first used: who only names the protocol does not pay for an HTTP client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from homing.chat.model import ChatModel, Message, StreamingChatModel

if TYPE_CHECKING:
    from homing.chat.dashscope import DashScopeLLM
    from homing.chat.ollama import OllamaLLM
    from homing.chat.openai import OpenAILLM

__all__ = ["ChatModel", "DashScopeLLM", "Message", "OllamaLLM", "OpenAILLM", "StreamingChatModel"]

_ADAPTERS = {"DashScopeLLM": "dashscope", "OllamaLLM": "ollama", "OpenAILLM": "openai"}


def __getattr__(name: str) -> Any:
    if name not in _ADAPTERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ADAPTERS[name]}"), name)
