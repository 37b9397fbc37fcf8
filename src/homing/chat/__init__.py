"""Chat models that answer in a JSON schema: one protocol, one file per provider."""

from __future__ import annotations

from homing.chat.dashscope import DashScopeLLM
from homing.chat.model import ChatModel, Message, StreamingChatModel
from homing.chat.ollama import OllamaLLM
from homing.chat.openai import OpenAILLM

__all__ = ["ChatModel", "DashScopeLLM", "Message", "OllamaLLM", "OpenAILLM", "StreamingChatModel"]
