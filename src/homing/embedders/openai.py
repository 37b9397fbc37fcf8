"""OpenAI's embeddings, and every server that speaks the same language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from homing.embedders.provider import Kind
from homing.embedders.remote import RemoteApi, RemoteModel, RemoteOptions, RemoteProvider


class OpenAIProvider(RemoteProvider):
    """`POST {base_url}/embeddings` with a bearer key.

    `dimensions` is sent where it is configured; without it the model's own width is expected. Some compatible servers
    refuse the field: `send_dimensions=False` then only checks the width. `endpoint` replaces `/embeddings`. A server
    that needs no key gets none.
    """

    api = RemoteApi(
        "openai",
        "https://api.openai.com/v1",
        {
            "text-embedding-3-small": RemoteModel(1536, 8191),
            "text-embedding-3-large": RemoteModel(3072, 8191),
            "text-embedding-ada-002": RemoteModel(1536, 8191),
        },
        texts=2048,
        # The API takes 300,000 a request; the rest is for the error of our estimate.
        tokens=280_000,
    )

    def __init__(
        self,
        model: str | None = None,
        *,
        endpoint: str = "/embeddings",
        send_dimensions: bool = True,
        **options: Unpack[RemoteOptions],
    ) -> None:
        super().__init__(model, **options)
        self._endpoint = endpoint
        can_choose = send_dimensions and self._model != "text-embedding-ada-002"
        self._sent_dimensions = options.get("dimensions") if can_choose else None

    def _ask(self, texts: list[str], kind: Kind) -> Sequence[Any]:
        body: dict[str, Any] = {"input": texts, "model": self._model, "encoding_format": "float"}
        if self._sent_dimensions is not None:
            body["dimensions"] = self._sent_dimensions
        return self._in_order(self._list_in(self._http.post(self._endpoint, body), "data"), index="index")
