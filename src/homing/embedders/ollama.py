"""Models that an Ollama server runs, usually on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homing.embedders.http import JsonApi
from homing.embedders.provider import Kind
from homing.embedders.remote import Limits, RemoteModel, RemoteProvider
from homing.embedders.secret import Secret
from homing.errors import ModelUnknown
from homing.vectors import Scale

OLLAMA = "http://localhost:11434"
CONTEXT = 4096
"""Tokens that Ollama reads where neither the model nor the server says otherwise."""
MODELS = {
    "nomic-embed-text": RemoteModel(768, 2048),
    "mxbai-embed-large": RemoteModel(1024, 512),
    "bge-m3": RemoteModel(1024, CONTEXT),
    "bge-large": RemoteModel(1024, 512),
    "all-minilm": RemoteModel(384, 256),
    "snowflake-arctic-embed2": RemoteModel(1024, CONTEXT),
    "embeddinggemma": RemoteModel(768, 2048),
    "qwen3-embedding:0.6b": RemoteModel(1024, CONTEXT),
    "qwen3-embedding:4b": RemoteModel(2560, CONTEXT),
    "qwen3-embedding:8b": RemoteModel(4096, CONTEXT),
}
LIMITS = Limits(texts=64, tokens=100_000, requests=1)
"""Ollama has no limits of its own; these keep a request within its timeout, and one machine from being asked twice."""


class OllamaProvider(RemoteProvider):
    """`POST {base_url}/api/embed`; seed 001 calls it `local`.

    Always sends `dimensions`, and `keep_alive`, without which Ollama unloads the model after five minutes and the next
    query waits for it. The server cuts long texts itself (`truncate`). The timeout is long because the first request
    loads the model; for queries a deadline around the provider is what bounds the wait.
    """

    server_cuts = True

    def __init__(
        self,
        model: str = "nomic-embed-text",
        *,
        api_key: str | Secret = "",
        base_url: str = OLLAMA,
        dimensions: int | None = None,
        max_tokens: int | None = None,
        keep_alive: str = "30m",
        timeout: float = 60.0,
        proxy: str | None = None,
        scale: Scale | None = None,
    ) -> None:
        model = model.removesuffix(":latest")
        api = JsonApi(
            "ollama",
            _server(base_url),
            key_header=("authorization", "Bearer "),
            api_key=Secret(api_key),
            timeout=timeout,
            proxy=proxy,
        )
        super().__init__(
            "ollama",
            model,
            api=api,
            known=MODELS,
            dimensions=dimensions,
            max_tokens=max_tokens or (None if model in MODELS else CONTEXT),
            limits=LIMITS,
            scale=scale,
        )
        self._keep_alive = keep_alive

    def _ask(self, texts: list[str], kind: Kind) -> Sequence[Any]:
        body = {
            "model": self._model,
            "input": texts[0] if len(texts) == 1 else texts,
            "truncate": True,
            "options": {"truncate": True},
            "dimensions": self._width,
            "keep_alive": self._keep_alive,
        }
        try:
            return self._list_in(self._api.post("api/embed", body), "embeddings")
        except ModelUnknown as error:
            raise ModelUnknown(f"{error.message}; try: ollama pull {self._model}", details=error.details) from error


def _server(base_url: str) -> str:
    """The server itself, where somebody gave the address of one of its two APIs."""
    return base_url.strip().rstrip("/").removesuffix("/v1").removesuffix("/api")
