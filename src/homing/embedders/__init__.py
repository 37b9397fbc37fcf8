"""Text becomes vectors: the provider protocol, one file per provider, and the wrappers around any of them.

Names are imported when they are first used: who only names the protocol loads no model and no HTTP client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from homing.lazy import names_from

if TYPE_CHECKING:
    from homing.embedders.cached import Cached
    from homing.embedders.dashscope import DashScopeProvider
    from homing.embedders.google import GoogleProvider
    from homing.embedders.local import LocalProvider
    from homing.embedders.ollama import OllamaProvider
    from homing.embedders.openai import OpenAIProvider
    from homing.embedders.provider import EmbeddingProvider
    from homing.embedders.registry import create
    from homing.embedders.resilient import Resilient

__all__ = [
    "Cached",
    "DashScopeProvider",
    "EmbeddingProvider",
    "GoogleProvider",
    "LocalProvider",
    "OllamaProvider",
    "OpenAIProvider",
    "Resilient",
    "create",
]

__getattr__ = names_from(
    __name__,
    cached="Cached",
    dashscope="DashScopeProvider",
    google="GoogleProvider",
    local="LocalProvider",
    ollama="OllamaProvider",
    openai="OpenAIProvider",
    provider="EmbeddingProvider",
    registry="create",
    resilient="Resilient",
)
