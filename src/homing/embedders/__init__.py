"""Text becomes vectors: the provider protocol, one file per provider, and the wrappers around any of them.

Names are imported when they are first used: who only names the protocol loads no model and no HTTP client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_HOMES = {
    "Cached": "cached",
    "DashScopeProvider": "dashscope",
    "EmbeddingProvider": "provider",
    "GoogleProvider": "google",
    "LocalProvider": "local",
    "OllamaProvider": "ollama",
    "OpenAIProvider": "openai",
    "Resilient": "resilient",
    "create": "registry",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
