"""Embedding as a service: OpenAI's `POST /v1/embeddings` and `GET /v1/models` over the models of a data folder.

Whatever speaks to OpenAI speaks to this, with `base_url` pointing here; the model it names may be the default's name,
its identity, `default`, or any other model that is configured.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from homing.app import Homing
from homing.embedders.model_folder import name_in
from homing.embedders.provider import EmbeddingProvider
from homing.embedders.window import estimate_tokens
from homing.errors import EmbeddingError, HomingError, ModelNotReady, RateLimited
from homing.models.manager import ConfiguredModel
from homing.text.decoding import readable, without_surrogates
from homing.vectors import Matrix, pack

MAX_TEXTS = 2048
"""Texts that one request may hold, as OpenAI has it."""
FIELDS = frozenset({"input", "model", "encoding_format", "dimensions", "user"})
DEFAULT = "default"


class Refused(Exception):
    """A request that cannot be served, in the words of OpenAI's API."""

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.body = readable({"error": {"message": message, "type": kind, "param": param, "code": code}})


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to embed."""

    texts: list[str]
    model: str
    as_base64: bool
    dimensions: int | None


def _refusal(description: str) -> dict[str, Any]:
    error = {"type": "object", "properties": {"error": {"type": "object"}}, "required": ["error"]}
    return {"description": description, "content": {"application/json": {"schema": error}}}


REFUSALS: dict[int | str, dict[str, Any]] = {
    400: _refusal("In OpenAI's words, what is wrong with the request"),
    401: _refusal("The server needs a token"),
    403: _refusal("Host or origin may not do this"),
    404: _refusal("There is no such model"),
    413: _refusal("More was sent than is taken"),
    429: _refusal("Asked too often; Retry-After says when to come back"),
    503: _refusal("The model, or the server, cannot answer now; Retry-After says when to come back"),
}
REQUEST = {
    "type": "object",
    "additionalProperties": False,
    "required": ["input", "model"],
    "properties": {
        "input": {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": MAX_TEXTS},
            ],
            "example": ["打开卧室的灯", "turn on the bedroom light"],
        },
        "model": {"type": "string", "minLength": 1, "example": DEFAULT},
        "encoding_format": {"type": "string", "enum": ["float", "base64"]},
        "dimensions": {"type": ["integer", "null"], "minimum": 1},
        "user": {},
    },
}


def openai_router(app: Homing) -> APIRouter:
    """The routes, to be mounted at the root of a FastAPI app."""
    router = APIRouter(prefix="/v1", tags=["openai"], responses=REFUSALS)

    @router.post(
        "/embeddings",
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": REQUEST}}}},
    )
    async def create_embeddings(request: Request) -> JSONResponse:
        """Embed texts, as OpenAI's API does."""
        content = await request.body()
        return await run_in_threadpool(_answered, lambda: _embed(app, read(content)))

    @router.get("/models")
    def list_openai_models() -> JSONResponse:
        """The models that can be asked for, the default first."""
        return _answered(lambda: {"object": "list", "data": _models(app)})

    @router.get("/models/{name:path}")
    def get_openai_model(name: str) -> JSONResponse:
        """Describe one of these models."""
        return _answered(lambda: _described(_chosen(app, name).id, name))

    return router


def read(content: bytes) -> Asked:
    """What a body asks for. Raises Refused."""
    body = _json(content)
    if not isinstance(body, dict):
        raise Refused("The body is not a JSON object.")
    if unknown := sorted(set(body) - FIELDS):
        raise Refused(f"Unrecognized request argument supplied: {', '.join(unknown)}", param=unknown[0])
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise Refused(f"You must provide a model parameter, e.g. {DEFAULT!r}.", param="model")
    encoding = body.get("encoding_format", "float")
    if encoding not in ("float", "base64"):
        raise Refused("encoding_format is 'float' or 'base64'.", param="encoding_format")
    width = body.get("dimensions")
    if width is not None and (isinstance(width, bool) or not isinstance(width, int) or width < 1):
        raise Refused("dimensions is a whole number of at least 1.", param="dimensions")
    return Asked(_texts(body.get("input")), model, encoding == "base64", width)


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Refused("We could not parse the JSON body of your request.") from error


def _texts(given: Any) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts:
        raise Refused("input is a text or a list of texts with at least one in it.", param="input")
    if any(isinstance(one, int | list) for one in texts):
        raise Refused("Arrays of tokens are not supported here: send the text itself.", param="input")
    if len(texts) > MAX_TEXTS:
        raise Refused(f"input has {len(texts)} texts; at most {MAX_TEXTS} are taken at once.", param="input")
    for at, one in enumerate(texts):
        if not isinstance(one, str) or not one:
            raise Refused(f"input[{at}] is not a text with at least one character.", param="input")
    return texts


def _embed(app: Homing, asked: Asked) -> dict[str, Any]:
    embedder = _chosen(app, asked.model)
    if asked.dimensions not in (None, embedder.dimensions):
        raise Refused(
            f"{embedder.id} gives {embedder.dimensions} dimensions here, not {asked.dimensions}.", param="dimensions"
        )
    rows = embedder.embed(asked.texts)
    tokens = sum(estimate_tokens(without_surrogates(text)) for text in asked.texts)
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": at, "embedding": one} for at, one in enumerate(_encoded(rows, asked))
        ],
        "model": asked.model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _encoded(rows: Matrix, asked: Asked) -> list[Any]:
    if asked.as_base64:
        return [base64.b64encode(pack(row)).decode("ascii") for row in rows]
    listed: list[Any] = rows.tolist()
    return listed


def _chosen(app: Homing, name: str) -> EmbeddingProvider:
    default = app.models.identity()
    if app.models.embeds and name in (DEFAULT, default, name_in(default)):
        return app.models.provider()
    for found in _configured(app):
        adapter = app.models.manager.get_or_create_adapter(found)
        if name in (found.model.model_key, adapter.id):
            return adapter
    known = ", ".join(one["id"] for one in _models(app)) or "none"
    raise Refused(
        f"The model {name!r} does not exist here; there are: {known}.",
        code="model_not_found",
        status=404,
        param="model",
    )


def _configured(app: Homing) -> list[ConfiguredModel]:
    providers = {one.id: one for one in app.models.providers()}
    found = [ConfiguredModel(providers[one.provider_id], one) for one in app.models.configured() if one.enabled]
    return [one for one in found if one.provider.enabled]


def _models(app: Homing) -> list[dict[str, Any]]:
    default = app.models.identity()
    listed = {name_in(default): _described(default, name_in(default))} if default else {}
    for found in _configured(app):
        name = found.model.model_key
        listed.setdefault(name, {"id": name, "object": "model", "created": 0, "owned_by": found.provider.name})
    return list(listed.values())


def _described(identity: str, name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": identity.partition("/")[0]}


def _answered(answer: Callable[[], Mapping[str, Any]]) -> JSONResponse:
    try:
        return JSONResponse(answer())
    except Refused as refused:
        return JSONResponse(refused.body, status_code=refused.status)
    except HomingError as error:
        failed = Refused(error.message, code=error.code, status=_status(error))
        after = getattr(error, "retry_after", None)
        headers = {} if after is None else {"retry-after": str(max(1, round(after)))}
        return JSONResponse(failed.body, status_code=failed.status, headers=headers)


def _status(error: HomingError) -> int:
    if isinstance(error, RateLimited):
        return 429
    return 503 if isinstance(error, EmbeddingError | ModelNotReady) else 500
