"""Google's Gemini embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from homing.embedders.http import JsonApi
from homing.embedders.provider import Kind
from homing.embedders.remote import Limits, RemoteModel, RemoteProvider
from homing.embedders.secret import Secret
from homing.errors import MalformedAnswer
from homing.vectors import Scale

GOOGLE = "https://generativelanguage.googleapis.com/v1beta"
MODELS = {
    "gemini-embedding-001": RemoteModel(3072, 2048),
    "gemini-embedding-2": RemoteModel(3072, 8192),
}
LIMITS = Limits(texts=100, tokens=200_000)
"""More than 100 texts are refused; the size keeps one request to about a megabyte."""
TASKS: dict[Kind, str] = {"document": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}


class GoogleProvider(RemoteProvider):
    """`models/{model}:embedContent` for one text, `:batchEmbedContents` for several.

    Always sends `outputDimensionality`, and `taskType` by the kind of the text. The key goes into a header: an address
    is logged. The API cuts long texts itself.
    """

    server_cuts = True

    def __init__(
        self,
        model: str = "gemini-embedding-001",
        *,
        api_key: str | Secret = "",
        base_url: str = GOOGLE,
        dimensions: int | None = None,
        max_tokens: int | None = None,
        timeout: float = 10.0,
        proxy: str | None = None,
        scale: Scale | None = None,
    ) -> None:
        api = JsonApi(
            "google",
            base_url,
            key_header=("x-goog-api-key", ""),
            api_key=Secret(api_key),
            timeout=timeout,
            proxy=proxy,
        )
        super().__init__(
            "google",
            model.removeprefix("models/"),
            api=api,
            known=MODELS,
            dimensions=dimensions,
            max_tokens=max_tokens,
            limits=LIMITS,
            scale=scale,
        )
        self._path = f"models/{quote(self._model, safe='')}"

    def _ask(self, texts: list[str], kind: Kind) -> Sequence[Any]:
        requests = [self._request(text, kind) for text in texts]
        if len(requests) == 1:
            answer = self._api.post(f"{self._path}:embedContent", requests[0])
            found: list[Any] = [answer.get("embedding")] if isinstance(answer, dict) else []
        else:
            answer = self._api.post(f"{self._path}:batchEmbedContents", {"requests": requests})
            found = self._list_in(answer, "embeddings")
        try:
            return [embedding["values"] for embedding in found]
        except (KeyError, TypeError) as error:
            raise MalformedAnswer(f"{self.id}: an embedding of the answer has no 'values'") from error

    def _request(self, text: str, kind: Kind) -> dict[str, Any]:
        return {
            "model": f"models/{self._model}",
            "content": {"parts": [{"text": text}]},
            "taskType": TASKS[kind],
            "outputDimensionality": self._width,
        }
