"""OpenAI's embeddings, and every server that speaks the same language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homing.embedders.http import JsonApi
from homing.embedders.provider import Kind
from homing.embedders.remote import Limits, RemoteModel, RemoteProvider
from homing.embedders.secret import Secret
from homing.vectors import Scale

OPENAI = "https://api.openai.com/v1"
MODELS = {
    "text-embedding-3-small": RemoteModel(1536, 8191),
    "text-embedding-3-large": RemoteModel(3072, 8191),
    "text-embedding-ada-002": RemoteModel(1536, 8191),
}
LIMITS = Limits(texts=2048, tokens=280_000)
"""The API takes 2,048 texts and 300,000 tokens a request; the rest is for the error of our estimate."""


class OpenAIProvider(RemoteProvider):
    """`POST {base_url}/embeddings` with a bearer key.

    `dimensions` is sent where it is configured; without it the model's own width is expected. Some compatible servers
    refuse the field: `send_dimensions=False` then only checks the width. `endpoint` replaces `/embeddings`. A server
    that needs no key gets none.
    """

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        api_key: str | Secret = "",
        base_url: str = OPENAI,
        endpoint: str = "/embeddings",
        dimensions: int | None = None,
        send_dimensions: bool = True,
        max_tokens: int | None = None,
        timeout: float = 10.0,
        proxy: str | None = None,
        scale: Scale | None = None,
    ) -> None:
        api = JsonApi(
            "openai",
            base_url,
            key_header=("authorization", "Bearer "),
            api_key=Secret(api_key),
            timeout=timeout,
            proxy=proxy,
        )
        super().__init__(
            "openai",
            model,
            api=api,
            known=MODELS,
            dimensions=dimensions,
            max_tokens=max_tokens,
            limits=LIMITS,
            scale=scale,
        )
        self._endpoint = endpoint
        self._sent_dimensions = dimensions if send_dimensions and model != "text-embedding-ada-002" else None

    def _ask(self, texts: list[str], kind: Kind) -> Sequence[Any]:
        body: dict[str, Any] = {"input": texts, "model": self._model, "encoding_format": "float"}
        if self._sent_dimensions is not None:
            body["dimensions"] = self._sent_dimensions
        return self._in_order(self._list_in(self._api.post(self._endpoint, body), "data"), index="index")
