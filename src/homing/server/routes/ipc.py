"""`POST /ipc/{channel}`: the channels of desktop apps over HTTP, with the same envelope as everywhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Generic, Literal, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from homing.channels import CHANNELS, Channels, Envelope, Work, schemas
from homing.channels.dispatcher import checked
from homing.channels.envelope import as_json, failed, kinds, succeeded
from homing.channels.messages import BoundChannel, as_message
from homing.errors import Canceled, Forbidden, HomingError, InvalidArgument, Overloaded
from homing.progress import IsCanceled
from homing.server.access import Caller, Reading
from homing.server.failures import status_of
from homing.server.ordering import begin_job
from homing.server.watched import LOOK_UP, watched

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


STATUS_BY_CODE = {kind.code: status_of(kind) for kind in kinds()} | {Forbidden.code: 403}
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


def _endpoint(channels: Callable[[Caller], Channels], channel: BoundChannel) -> Callable[..., Awaitable[Response]]:
    async def endpoint(request: Request, caller: Reading) -> Response:
        try:
            if channel.writes and not caller.may("write"):
                raise Forbidden(f"this token may {caller.scope}, and {channel.name} needs write")
            payload = _payload(await request.body())
            if channel.operation.job is not None:
                return _answer(await _done(request, caller, channel, payload))
        except HomingError as error:
            return _answer(failed(error))
        return _answer(await _watched(request, caller, channels(caller), channel.name, payload))

    return endpoint


async def _watched(request: Request, caller: Caller, channels: Channels, channel: str, payload: Any) -> Envelope:
    """The answer; a client that has gone takes its request back."""

    def answer(gone: IsCanceled) -> Envelope:
        work = Work(cancelled=gone, on_search=caller.service.metrics.on_search)
        return channels.invoke(channel, payload, work=work)

    return await watched(request, answer)


async def _done(request: Request, caller: Caller, channel: BoundChannel, payload: Any) -> Envelope:
    """The answer of work that is a job, once it is done; a client that has gone takes it back.

    When the server ends before that, the next one goes on with the job.
    """
    job = await run_in_threadpool(begin_job, channel.operation, caller, checked(channel, payload))
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def happened() -> None:
        loop.call_soon_threadsafe(news.set)

    stop = job.listen(happened)
    try:
        while not (job.ended or caller.service.stopping.is_set()):
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), LOOK_UP)
            news.clear()
            if not job.ended and await request.is_disconnected():
                job.cancel()
    finally:
        stop()
    view = job.view
    if view.state == "done":
        return succeeded(as_message(channel.operation.output.model_validate(view.result)))
    if view.error is not None:
        return {"ok": False, "error": {**view.error, "details": {"job": view.id}}}
    if caller.service.stopping.is_set():
        raise Overloaded(f"the server is about to end; the next one goes on with job {view.id}")
    raise Canceled("the request was canceled; what was done until then stays done")


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


def _body(channel: BoundChannel) -> dict[str, Any]:
    schema = channel.request.model_json_schema(by_alias=True)
    shown = {name: one["examples"][0] for name, one in schema.get("properties", {}).items() if "examples" in one}
    return {"required": "required" in schema, "content": {"application/json": {"schema": schema, "example": shown}}}


router = ipc_router(lambda caller: Channels(caller.app))
