"""`POST /ipc/{channel}`: the channels of desktop apps over HTTP, with the same envelope as everywhere."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Literal, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from homing.channels import CHANNELS, Channels, Envelope, Work, schemas
from homing.channels.channel import Channel
from homing.channels.envelope import failed, kinds
from homing.channels.rendering import as_json
from homing.errors import Forbidden, HomingError, InvalidArgument
from homing.on_search import OnSearch
from homing.server.access import Caller, Reading
from homing.server.failures import STATUSES

LOOK_UP = 0.5
"""Seconds between two looks whether the client still waits."""

EXAMPLES: dict[str, dict[str, Any]] = {
    "embedding:generate": {"texts": ["他一个人守着灯塔", "She keeps the silver key."]},
    "embedding:search": {"projectId": "novel", "query": "孤独的感觉"},
    "embedding:reindex": {"projectId": "novel"},
    "embedding:status": {"waitMs": 1000},
    "search:fts:query": {"projectId": "novel", "query": "灯塔", "limit": 20, "offset": 0},
    "rag:retrieve": {"projectId": "novel", "query": "沈舟走到河边", "maxTokens": 1500},
    "rag:config:get": {},
    "rag:config:update": {"topK": 3},
    "document:save": {"projectId": "novel", "documentId": "ch1", "text": "他一个人守着灯塔。\n\nThe market was loud."},
    "document:delete": {"projectId": "novel", "documentId": "ch1"},
    "document:rename": {"projectId": "novel", "documentId": "ch1", "newDocumentId": "prologue"},
    "document:move": {"projectId": "novel", "documentId": "ch1", "toProjectId": "archive"},
    "document:list": {"projectId": "novel"},
    "document:text": {"projectId": "novel", "documentId": "ch1"},
    "document:chunks": {"projectId": "novel", "documentId": "ch1", "offsetUnit": "utf-16"},
    "project:list": {},
    "project:delete": {"projectId": "novel"},
}
"""A request of each channel, for the description of the API."""

Data = TypeVar("Data", bound=BaseModel)


class ChannelSuccess(BaseModel, Generic[Data]):
    """An answer."""

    ok: Literal[True]
    data: Data


class ChannelFailure(BaseModel):
    """Why there is none: a stable code, and a message that says what to do next."""

    code: str
    message: str
    details: dict[str, Any]


class ChannelRefusal(BaseModel):
    """A request that was not served."""

    ok: Literal[False]
    error: ChannelFailure


def _status(kind: type[HomingError]) -> int:
    return next((status for known, status in STATUSES if issubclass(kind, known)), 500)


STATUS_BY_CODE = {kind.code: _status(kind) for kind in kinds()} | {Forbidden.code: 403}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ChannelRefusal} for status in {400, 403, 404, 500, *STATUS_BY_CODE.values()}
}


def ipc_router(channels: Callable[[Caller], Channels]) -> APIRouter:
    """The routes; `channels` gives those of whoever asks."""
    router = APIRouter(prefix="/ipc", tags=["channels"])

    @router.get("")
    def describe_channels(caller: Reading) -> dict[str, Any]:
        """Every channel with the JSON Schemas of its request and response."""
        return schemas()

    for channel in CHANNELS.values():
        router.add_api_route(
            f"/{channel.name}",
            _endpoint(channels, channel),
            methods=["POST"],
            name=channel.name,
            description=channel.description,
            operation_id=channel.name.replace(":", "_"),
            openapi_extra={"requestBody": _body(channel)},
            responses={200: {"model": ChannelSuccess[channel.response]}, **REFUSALS},  # type: ignore[name-defined]
        )

    @router.post("/{channel:path}", include_in_schema=False)
    async def unknown_channel(channel: str, caller: Reading) -> Response:
        """Say which channels there are."""
        return _answer(channels(caller).invoke(channel))

    return router


def _endpoint(channels: Callable[[Caller], Channels], channel: Channel) -> Callable[..., Awaitable[Response]]:
    async def endpoint(request: Request, caller: Reading) -> Response:
        try:
            if channel.writes and not caller.may("write"):
                raise Forbidden(f"this token may {caller.scope}, and {channel.name} needs write")
            payload = _payload(await request.body())
        except HomingError as error:
            return _answer(failed(error))
        on_search = caller.service.metrics.on_search
        return _answer(await _watched(request, channels(caller), channel.name, payload, on_search))

    return endpoint


async def _watched(request: Request, channels: Channels, channel: str, payload: Any, on_search: OnSearch) -> Envelope:
    """The answer; a client that has gone takes its request back."""
    gone = threading.Event()
    work = Work(cancelled=gone.is_set, on_search=on_search)
    answering = asyncio.ensure_future(run_in_threadpool(channels.invoke, channel, payload, work=work))
    while not answering.done():
        await asyncio.wait({answering}, timeout=LOOK_UP)
        if not answering.done() and await request.is_disconnected():
            gone.set()
    return answering.result()


def _payload(body: bytes) -> Any:
    if not body.strip():
        return None
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument("the body is not JSON; send an object with the fields of the channel") from error
    if not isinstance(payload, dict):
        raise InvalidArgument("the body is a JSON object with the fields of the channel")
    return payload


def _answer(envelope: Envelope) -> Response:
    status = 200 if envelope["ok"] else STATUS_BY_CODE.get(envelope["error"]["code"], 500)
    return Response(
        as_json(envelope),
        status_code=status,
        headers={"retry-after": "1"} if status == 503 else None,
        media_type="application/json",
    )


def _body(channel: Channel) -> dict[str, Any]:
    schema = channel.request.model_json_schema(by_alias=True)
    content = {"schema": schema, "example": EXAMPLES[channel.name]}
    return {"required": "required" in schema, "content": {"application/json": content}}


router = ipc_router(lambda caller: Channels(caller.app))
