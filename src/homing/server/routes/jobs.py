"""`/jobs`: long work, its progress as it happens, and a way to stop it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from homing.operations.models import Output
from homing.server.access import Caller, Reading, Writing
from homing.server.job import Event, Job, JobView
from homing.server.service import Service

router = APIRouter(prefix="/jobs", tags=["jobs"])

SIGN_OF_LIFE = 15.0
"""Seconds of silence after which a stream says that it is still there."""
EVENT = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "event": {"type": "string"}, "data": {"type": "string"}},
    "required": ["id", "event", "data"],
}
LOOK_UP = 0.5
"""Seconds after which a stream looks whether the server is about to end."""


class JobError(Output):
    """Why a job failed."""

    code: str = Field(examples=["STORE_BUSY"])
    message: str


class JobOut(Output):
    """A job: `done` of `total` steps, and in the end a result or an error."""

    id: str = Field(examples=["0b8f3c1d2e4a5f60"])
    kind: str = Field(examples=["reindex"])
    subject: str = Field(examples=["novel"])
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    done: int
    total: int
    result: dict[str, Any] | None
    error: JobError | None
    created: float
    ended: float | None


class JobList(Output):
    """Your jobs, the newest first."""

    jobs: list[JobOut]


@router.get("")
def list_jobs(caller: Reading) -> JobList:
    """List your jobs; an administrator sees those of the whole server."""
    return JobList(jobs=[job_out(job.view) for job in caller.service.jobs.all() if _visible(job, caller)])


@router.get("/{job_id}", responses={404: {}})
def get_job(job_id: str, caller: Reading) -> JobOut:
    """Show how far a job is."""
    return job_out(_found(job_id, caller).view)


@router.delete("/{job_id}", responses={404: {}})
def cancel_job(job_id: str, caller: Writing) -> JobOut:
    """Ask a job to stop. What it did stays done; one that has ended stays as it is."""
    job = _found(job_id, caller)
    caller.service.jobs.cancel(job)
    return job_out(job.view)


@router.get(
    "/{job_id}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events: each has the job as `data`; the last is the one with which it ended.",
            "content": {"text/event-stream": {"schema": EVENT}},
        },
        404: {},
    },
)
async def follow_job(
    job_id: str,
    caller: Reading,
    last_event_id: Annotated[str | None, Header(description="Go on after this event.", max_length=20)] = None,
) -> StreamingResponse:
    """Follow a job as it happens. A stream that was cut off goes on after `Last-Event-ID`."""
    job = await run_in_threadpool(_found, job_id, caller)
    after = int(last_event_id) if last_event_id and last_event_id.isdecimal() else 0
    headers = {"x-accel-buffering": "no"}
    return StreamingResponse(_events(job, after, caller.service), media_type="text/event-stream", headers=headers)


def job_out(view: JobView) -> JobOut:
    """A job as it is answered."""
    return JobOut.of(view, error=None if view.error is None else dict(view.error))


async def _events(job: Job, after: int, service: Service) -> AsyncIterator[str]:
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def happened() -> None:
        loop.call_soon_threadsafe(news.set)

    stop = job.listen(happened)
    quiet = 0.0
    try:
        while not service.stopping.is_set():
            news.clear()
            # Asked before the events are: what happens in between is in them.
            ended = job.ended
            for event in job.events_after(after):
                after, quiet = event.number, 0.0
                yield _written(event)
            if ended:
                return
            try:
                await asyncio.wait_for(news.wait(), LOOK_UP)
            except TimeoutError:
                quiet += LOOK_UP
                if quiet >= SIGN_OF_LIFE:
                    quiet = 0.0
                    yield ": still there\n\n"
    finally:
        stop()


def _written(event: Event) -> str:
    return f"id: {event.number}\nevent: {event.view.state}\ndata: {job_out(event.view).model_dump_json()}\n\n"


def _found(job_id: str, caller: Caller) -> Job:
    job = caller.service.jobs.get(job_id)
    if not _visible(job, caller):
        raise caller.service.jobs.unknown(job_id)
    return job


def _visible(job: Job, caller: Caller) -> bool:
    return caller.may("admin") if job.shared else job.view.user == caller.user
