"""Models that an Ollama server runs, usually on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from homing.embedders.provider import Kind
from homing.embedders.remote import RemoteApi, RemoteModel, RemoteOptions, RemoteProvider
from homing.errors import ModelUnknown

CONTEXT = 4096
"""Tokens that Ollama reads where neither the model nor the server says otherwise."""


class OllamaProvider(RemoteProvider):
    """`POST {base_url}/api/embed`; seed 001 calls it `local`.

    Always sends `dimensions`, and `keep_alive`, without which Ollama unloads the model after five minutes and the next
    query waits for it. The server cuts long texts itself (`truncate`). The timeout is long because the first request
    loads the model; for queries a deadline around the provider is what bounds the wait.
    """

    api = RemoteApi(
        "ollama",
        "http://localhost:11434",
        {
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
        },
        # Ollama has no limits of its own; these keep a request within its timeout, and one machine from being asked
        # twice at the same time.
        texts=64,
        tokens=100_000,
        requests=1,
        timeout=60.0,
        window=CONTEXT,
        server_cuts=True,
    )

    def __init__(self, model: str | None = None, *, keep_alive: str = "30m", **options: Unpack[RemoteOptions]) -> None:
        super().__init__(model, **options)
        self._keep_alive = keep_alive

    def _model_key(self, model: str) -> str:
        return model.removesuffix(":latest")

    def _server(self, base_url: str) -> str:
        # Somebody may have given the address of one of its two APIs.
        return base_url.strip().rstrip("/").removesuffix("/v1").removesuffix("/api")

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
            return self._list_in(self._http.post("api/embed", body), "embeddings")
        except ModelUnknown as error:
            raise ModelUnknown(f"{error.message}; try: ollama pull {self._model}", details=error.details) from error
