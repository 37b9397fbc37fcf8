"""Alibaba Cloud's text embeddings (百炼 / Model Studio)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homing.embedders.provider import Kind
from homing.embedders.remote import RemoteApi, RemoteModel, RemoteProvider

FIXED_WIDTH = {"text-embedding-v1", "text-embedding-v2"}


class DashScopeProvider(RemoteProvider):
    """`POST {base_url}/services/embeddings/text-embedding/text-embedding` with a bearer key.

    The API's own format rather than its OpenAI-compatible one, because only the former tells queries from documents
    (`text_type`). `dimension` is always sent to the models that take it. Outside mainland China pass
    `base_url="https://dashscope-intl.aliyuncs.com/api/v1"`; the address of the compatible mode is understood, too.
    """

    api = RemoteApi(
        "dashscope",
        "https://dashscope.aliyuncs.com/api/v1",
        {
            "text-embedding-v4": RemoteModel(1024, 8192),
            "text-embedding-v3": RemoteModel(1024, 8192),
            "text-embedding-v2": RemoteModel(1536, 2048),
            "text-embedding-v1": RemoteModel(1536, 2048),
        },
        # Ten texts a request, each up to the model's window.
        texts=10,
        tokens=81_920,
    )

    def _server(self, base_url: str) -> str:
        return base_url.replace("/compatible-mode/v1", "/api/v1")

    def _ask(self, texts: list[str], kind: Kind) -> Sequence[Any]:
        parameters: dict[str, Any] = {"text_type": kind}
        if self._model not in FIXED_WIDTH:
            parameters["dimension"] = self._width
        body = {"model": self._model, "input": {"texts": texts}, "parameters": parameters}
        answer = self._http.post("services/embeddings/text-embedding/text-embedding", body)
        output = answer.get("output") if isinstance(answer, dict) else None
        return self._in_order(self._list_in(output, "embeddings"), index="text_index")
