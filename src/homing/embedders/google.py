"""Google's Gemini embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from homing.embedders.provider import Kind
from homing.embedders.remote import RemoteApi, RemoteModel, RemoteProvider
from homing.errors import MalformedAnswer

TASKS: dict[Kind, str] = {"document": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}


class GoogleProvider(RemoteProvider):
    """`models/{model}:embedContent` for one text, `:batchEmbedContents` for several.

    Always sends `outputDimensionality`, and `taskType` by the kind of the text. The key goes into a header: an address
    is logged. The API cuts long texts itself.
    """

    api = RemoteApi(
        "google",
        "https://generativelanguage.googleapis.com/v1beta",
        {"gemini-embedding-001": RemoteModel(3072, 2048), "gemini-embedding-2": RemoteModel(3072, 8192)},
        # More than 100 texts are refused; the size keeps one request to about a megabyte.
        texts=100,
        tokens=200_000,
        key_header=("x-goog-api-key", ""),
        server_cuts=True,
    )

    def _model_key(self, model: str) -> str:
        return model.removeprefix("models/")

    def _ask(self, texts: list[str], kind: Kind) -> Sequence[Any]:
        path = f"models/{quote(self._model, safe='')}"
        requests = [
            {
                "model": f"models/{self._model}",
                "content": {"parts": [{"text": text}]},
                "taskType": TASKS[kind],
                "outputDimensionality": self._width,
            }
            for text in texts
        ]
        if len(requests) == 1:
            answer = self._http.post(f"{path}:embedContent", requests[0])
            found: list[Any] = [answer.get("embedding")] if isinstance(answer, dict) else []
        else:
            answer = self._http.post(f"{path}:batchEmbedContents", {"requests": requests})
            found = self._list_in(answer, "embeddings")
        try:
            return [embedding["values"] for embedding in found]
        except (KeyError, TypeError) as error:
            raise MalformedAnswer(f"{self.id}: an embedding of the answer has no 'values'") from error
