"""`POST /search`: one question over everything."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from fastapi import APIRouter
from pydantic import Field

from homing.errors import HomingError
from homing.legs import run_legs
from homing.server.access import Caller, Reading
from homing.server.body import Answer, Body, Limit, Name, Query
from homing.server.found import FoundGroup, FoundNotice, Source, devices_group, group_of, skills_group

router = APIRouter(tags=["search"])

SOURCES: tuple[Source, ...] = ("skills", "documents", "memory", "devices")
RELATED = 0.5
"""The border between unrelated and related on the readable scale: what lies below is no answer to a question."""
DEADLINE = 15.0
"""Seconds that an answer waits for a source; each has shorter deadlines of its own."""


class SearchBody(Body):
    """What to look for, and where."""

    query: Query = Field(examples=["孤独的感觉"])
    sources: list[Source] = Field(list(SOURCES), min_length=1, max_length=len(SOURCES), examples=[["documents"]])
    project: Name | None = Field(None, description="Only documents of this project.", examples=["novel"])
    limit: Limit = Field(5, examples=[5])


class SearchAnswer(Answer):
    """One group per source, in the order they were asked for."""

    groups: list[FoundGroup]


@router.post("/search")
def search_everything(body: SearchBody, caller: Reading) -> SearchAnswer:
    """Ask skills, documents, memory and devices at once. A source that fails is an empty group that says so."""
    wanted = list(dict.fromkeys(body.sources))
    caller.service.log_query(body.query)
    asked: dict[str, Callable[[], FoundGroup]] = {source: partial(_ASKED[source], body, caller) for source in wanted}
    groups = []
    for source, outcome in run_legs(asked, deadline=DEADLINE).items():
        group = outcome.value
        if group is None:
            group = _failed(source, outcome.error, outcome.code, outcome.milliseconds)
        caller.service.metrics.searched(group)
        groups.append(group)
    return SearchAnswer(groups=groups)


def _skills(body: SearchBody, caller: Caller) -> FoundGroup:
    return _related(skills_group(body.query, caller.app.skills.find_relevant_skills(body.query, body.limit)))


def _memory(body: SearchBody, caller: Caller) -> FoundGroup:
    return _related(group_of("memory", body.query, caller.app.memory.recall(body.query, limit=body.limit)))


def _devices(body: SearchBody, caller: Caller) -> FoundGroup:
    started = time.perf_counter()
    answer = caller.app.devices.ask(body.query)
    group = devices_group(body.query, answer, round((time.perf_counter() - started) * 1000, 3))
    return group.model_copy(update={"hits": group.hits[: body.limit]})


def _documents(body: SearchBody, caller: Caller) -> FoundGroup:
    search = caller.app.documents.search
    found = search(body.project, body.query, mode="hybrid", top_k=body.limit, min_score=RELATED)
    return group_of("documents", body.query, found)


_ASKED: dict[str, Callable[[SearchBody, Caller], FoundGroup]] = {
    "skills": _skills,
    "documents": _documents,
    "memory": _memory,
    "devices": _devices,
}


def _related(group: FoundGroup) -> FoundGroup:
    """Without the hits that share neither meaning nor a word with the query: the least bad is no answer."""
    kept = [hit for hit in group.hits if hit.matched or hit.score is None or hit.score >= RELATED]
    return group.model_copy(update={"hits": kept})


def _failed(source: str, error: Exception | None, code: str, took: float) -> FoundGroup:
    told = error.message if isinstance(error, HomingError) else "an unexpected failure; see the server's log"
    return FoundGroup(
        source=source,
        mode="keyword",
        degraded=True,
        reason=f"{source}:{code}",
        notice=FoundNotice(zh=f"{source} 暂时无法搜索：{told}", en=f"{source} cannot be searched for now: {told}"),
        hits=[],
        took_ms=round(took, 3),
    )
