"""The embedding APIs as their servers see them: what they accept, what they refuse and in which words."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Rows = list[list[float]]
MODELS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "gemini-embedding-001": 3072,
    "nomic-embed-text": 768,
    "all-minilm": 384,
    "text-embedding-v4": 1024,
    "text-embedding-v2": 1536,
}
"""Models that every loopback API has, with their own width."""


class Refused(Exception):
    """The API would not take this request."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for."""

    texts: list[str]
    dimensions: int
    single: bool = False


class OpenAIFormat:
    """`POST /v1/embeddings`."""

    def serves(self, path: str) -> bool:
        return path == "/v1/embeddings"

    def read(self, path: str, headers: Mapping[str, str], body: Any, key: str) -> Asked:
        if key and headers.get("authorization") != f"Bearer {key}":
            sent = headers.get("authorization", "").removeprefix("Bearer ")
            raise Refused(401, f"Incorrect API key provided: {sent}.", "invalid_api_key")
        _only(body, {"input", "model", "encoding_format", "dimensions", "user"}, {"input", "model"})
        if body["model"] not in MODELS:
            raise Refused(404, f"The model `{body['model']}` does not exist", "model_not_found")
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        _texts(texts, at_most=2048)
        if body.get("encoding_format", "float") != "float":
            raise Refused(400, "only encoding_format float is served here")
        if "dimensions" in body and body["model"].endswith("ada-002"):
            raise Refused(400, "This model does not support specifying dimensions.")
        if max(len(text.encode()) for text in texts) > 33_000:
            raise Refused(400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded")
        return Asked(texts, body.get("dimensions", MODELS[body["model"]]))

    def write(self, asked: Asked, rows: Rows) -> Any:
        data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
        # The order of the list is not promised; the index is.
        random.Random(len(data)).shuffle(data)
        return {"object": "list", "data": data, "model": "loopback", "usage": {"prompt_tokens": 1, "total_tokens": 1}}

    def error(self, status: int, message: str, code: str) -> Any:
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code or None}}


class GoogleFormat:
    """`POST /v1beta/models/{model}:embedContent` and `:batchEmbedContents`."""

    _path = re.compile(r"/v1beta/models/([^/:]+):(embedContent|batchEmbedContents)$")

    def serves(self, path: str) -> bool:
        return self._path.match(path) is not None

    def read(self, path: str, headers: Mapping[str, str], body: Any, key: str) -> Asked:
        match = self._path.match(path)
        assert match is not None
        model, method = match.groups()
        if key and headers.get("x-goog-api-key") != key:
            raise Refused(400, "API key not valid. Please pass a valid API key.", "API_KEY_INVALID")
        if model not in MODELS:
            raise Refused(404, f"models/{model} is not found for API version v1beta.")
        single = method == "embedContent"
        if not single:
            _only(body, {"requests"}, {"requests"})
        requests = [body] if single else body["requests"]
        if not 1 <= len(requests) <= 100:
            raise Refused(400, "* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch")
        for request in requests:
            _only(request, {"model", "content", "taskType", "title", "outputDimensionality"}, {"model", "content"})
            if request["model"] != f"models/{model}":
                raise Refused(400, "model of a request differs from the model of the batch")
            if request.get("taskType") not in (None, "RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"):
                raise Refused(400, "unknown taskType")
        texts = [request["content"]["parts"][0]["text"] for request in requests]
        _texts(texts, at_most=100)
        return Asked(texts, requests[0].get("outputDimensionality", MODELS[model]), single=single)

    def write(self, asked: Asked, rows: Rows) -> Any:
        # The real API normalises only its full width; so does not this one.
        embeddings = [{"values": [2.5 * value for value in row]} for row in rows]
        return {"embedding": embeddings[0] if embeddings else {}} if asked.single else {"embeddings": embeddings}

    def error(self, status: int, message: str, code: str) -> Any:
        names = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}
        error = {"code": status, "message": message, "status": names.get(status, "UNKNOWN")}
        return {"error": error | ({"details": [{"reason": code, "domain": "googleapis.com"}]} if code else {})}


class OllamaFormat:
    """`POST /api/embed`."""

    def serves(self, path: str) -> bool:
        return path == "/api/embed"

    def read(self, path: str, headers: Mapping[str, str], body: Any, key: str) -> Asked:
        if key and headers.get("authorization") != f"Bearer {key}":
            raise Refused(401, "unauthorized")
        _only(body, {"model", "input", "truncate", "options", "keep_alive", "dimensions"}, {"model", "input"})
        if body["model"] not in MODELS:
            raise Refused(404, f'model "{body["model"]}" not found, try pulling it first')
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        _texts(texts, at_most=100_000)
        if not body.get("truncate", True) and max(map(len, texts)) > 10_000:
            raise Refused(400, "the input length exceeds the context length")
        return Asked(texts, body.get("dimensions", MODELS[body["model"]]))

    def write(self, asked: Asked, rows: Rows) -> Any:
        return {"model": "loopback", "embeddings": rows, "total_duration": 1, "load_duration": 1}

    def error(self, status: int, message: str, code: str) -> Any:
        return {"error": message}


class DashScopeFormat:
    """`POST /api/v1/services/embeddings/text-embedding/text-embedding`."""

    def serves(self, path: str) -> bool:
        return path == "/api/v1/services/embeddings/text-embedding/text-embedding"

    def read(self, path: str, headers: Mapping[str, str], body: Any, key: str) -> Asked:
        if key and headers.get("authorization") != f"Bearer {key}":
            raise Refused(401, "Invalid API-key provided.", "InvalidApiKey")
        _only(body, {"model", "input", "parameters"}, {"model", "input"})
        if body["model"] not in MODELS:
            raise Refused(400, "Model not exist.", "InvalidParameter")
        parameters = body.get("parameters", {})
        _only(parameters, {"text_type", "dimension", "output_type", "instruct"}, set())
        if parameters.get("text_type") not in (None, "query", "document"):
            raise Refused(400, "text_type is query or document", "InvalidParameter")
        if "dimension" in parameters and body["model"] == "text-embedding-v2":
            raise Refused(400, "dimension is not supported by this model", "InvalidParameter")
        texts = body["input"]["texts"]
        _texts(texts, at_most=10)
        if max(len(text.encode()) for text in texts) > 33_000:
            raise Refused(400, "Range of input length should be [1, 8192]", "InvalidParameter")
        return Asked(texts, parameters.get("dimension", MODELS[body["model"]]))

    def write(self, asked: Asked, rows: Rows) -> Any:
        embeddings = [{"text_index": place, "embedding": row} for place, row in enumerate(rows)]
        return {"output": {"embeddings": embeddings[::-1]}, "usage": {"total_tokens": 1}, "request_id": "loopback"}

    def error(self, status: int, message: str, code: str) -> Any:
        return {"code": code or "InternalError", "message": message, "request_id": "loopback"}


WIRE_FORMATS = (OpenAIFormat(), GoogleFormat(), OllamaFormat(), DashScopeFormat())


def _only(body: Any, allowed: set[str], required: set[str]) -> None:
    if not isinstance(body, dict) or set(body) - allowed or required - set(body):
        raise Refused(400, f"expected an object with {sorted(required)} and nothing beyond {sorted(allowed)}")


def _texts(texts: Any, *, at_most: int) -> None:
    if not isinstance(texts, list) or not 1 <= len(texts) <= at_most:
        raise Refused(400, f"expected a list of 1 to {at_most} texts")
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise Refused(400, "input cannot be an empty string")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Refused(400, "input is not valid Unicode") from None
