"""The four remote providers, as the tests of what they share see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from homing.embedders.dashscope import DashScopeProvider
from homing.embedders.google import GoogleProvider
from homing.embedders.ollama import OllamaProvider
from homing.embedders.openai import OpenAIProvider
from homing.embedders.remote import RemoteProvider

KEY = "sk-loopback-0123456789-SECRET"


@dataclass(frozen=True)
class Remote:
    """One of the four, as a test sees it."""

    kind: type[RemoteProvider]
    model: str
    base: str
    most_texts: int

    def at(self, url: str, **options: Any) -> RemoteProvider:
        build: Callable[..., RemoteProvider] = self.kind
        return build(**{"model": self.model, "api_key": KEY, "base_url": url + self.base, "dimensions": 64} | options)


REMOTES = {
    "openai": Remote(OpenAIProvider, "text-embedding-3-small", "/v1", 2048),
    "google": Remote(GoogleProvider, "gemini-embedding-001", "/v1beta", 100),
    "ollama": Remote(OllamaProvider, "nomic-embed-text", "", 64),
    "dashscope": Remote(DashScopeProvider, "text-embedding-v4", "/api/v1", 10),
}
