"""Where names become providers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from homing.embedders.provider import EmbeddingProvider
from homing.errors import InvalidArgument, UnknownProvider
from homing.secret import Secret

PROVIDERS = {
    "openai": ("homing.embedders.openai", "OpenAIProvider"),
    "google": ("homing.embedders.google", "GoogleProvider"),
    "local": ("homing.embedders.ollama", "OllamaProvider"),
    "ollama": ("homing.embedders.ollama", "OllamaProvider"),
    "dashscope": ("homing.embedders.dashscope", "DashScopeProvider"),
    "bundled": ("homing.embedders.local", "LocalProvider"),
}
"""Embedding types and what serves them.

`local` is an Ollama server, as REQ-EMB-011 has it; `bundled` runs in this process.
"""

PROVIDER_TYPE_TO_EMBEDDING_TYPE = {
    "openai": "openai",
    "gemini": "google",
    "google": "google",
    "ollama": "local",
    "dashscope": "dashscope",
}
"""The embedding type of each type in the `providers` map; a type that is not here (anthropic) has no embeddings."""


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """One entry of the `providers` map, as far as embedding needs it."""

    type: str
    api_key: Secret = field(default_factory=Secret)


@dataclass(frozen=True, slots=True)
class Backend:
    """What embedding settings resolve to. False, with both fields empty, where embedding is disabled."""

    type: str = ""
    api_key: Secret = field(default_factory=Secret)

    def __bool__(self) -> bool:
        return bool(self.type)


def create(type: str, **options: Any) -> EmbeddingProvider:  # noqa: A002 - the word of the specification
    """A provider of that type; options are those of its constructor. Imports nothing of the other types."""
    if type not in PROVIDERS:
        raise UnknownProvider(f"no embedding provider of type {type!r}; known: {', '.join(sorted(PROVIDERS))}")
    module, name = PROVIDERS[type]
    provider = getattr(import_module(module), name)
    known = list(_options(provider))
    if unknown := sorted(set(options) - set(known)):
        raise InvalidArgument(f"{type} has no option {', '.join(unknown)}; its options are {', '.join(known)}")
    created: EmbeddingProvider = provider(**options)
    return created


def _options(provider: type) -> dict[str, inspect.Parameter]:
    """What a constructor takes, and that of the class it extends where it passes anything on."""
    own = dict(inspect.signature(provider.__init__).parameters)  # type: ignore[misc]
    del own["self"]
    if own.pop("options", None) is not None:
        own = {**_options(provider.__mro__[1]), **own}
    return own


def resolve_backend(provider_id: str, provider: str, providers: Mapping[str, ProviderEntry]) -> Backend:
    """The embedding type and key that the settings mean, by REQ-EMB-010 and 011.

    `provider_id` names an entry of `providers`; where it names none, or one whose type has no embeddings, the result is
    empty. Without it, `provider="local"` is a local server without a key, and anything else is no embedding at all.
    """
    if provider_id:
        entry = providers.get(provider_id)
        embedding_type = PROVIDER_TYPE_TO_EMBEDDING_TYPE.get(entry.type, "") if entry else ""
        if entry is None or not embedding_type:
            return Backend()
        return Backend(embedding_type, Secret() if embedding_type == "local" else entry.api_key)
    return Backend("local") if provider == "local" else Backend()
