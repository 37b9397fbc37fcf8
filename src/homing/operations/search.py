"""One question over everything."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

from pydantic import Field

from homing.engine.ranking import MIN_SCORE
from homing.engine.search import cut
from homing.errors import HomingError
from homing.legs import run_legs
from homing.operations.hits import NoticeOut, SearchOut, Source, devices_out, search_out, skills_out
from homing.operations.models import Input, Limit, Name, Output, Query, Weaker
from homing.operations.operation import Call, operation
from homing.records import Mode

SOURCES: tuple[Source, ...] = ("skills", "documents", "memory", "devices")
DEADLINE = 15.0
"""Seconds that an answer waits for a source; each has shorter deadlines of its own."""


class SearchEverything(Input):
    """What to look for, and where."""

    query: Query = Field(examples=["孤独的感觉"])
    sources: list[Source] = Field(list(SOURCES), min_length=1, max_length=len(SOURCES), examples=[["documents"]])
    project: Name | None = Field(None, description="Only documents of this project.", examples=["novel"])
    limit: Limit = Field(5, examples=[5])
    weaker: Weaker = False


class EverythingOut(Output):
    """One group per source, in the order they were asked for."""

    groups: list[SearchOut]

    def searches(self) -> Iterator[tuple[str, Mode, bool]]:
        """One for each source."""
        return (one for group in self.groups for one in group.searches())


@operation("read", http="POST /search", tag="search")
def search_everything(call: Call, asked: SearchEverything) -> EverythingOut:
    """Ask skills, documents, memory and devices at once. A source that fails is an empty group that says so."""
    legs: dict[str, Callable[[], SearchOut]] = {
        source: partial(_ASKED[source], call, asked) for source in dict.fromkeys(asked.sources)
    }
    return EverythingOut(
        groups=[
            _failed(source, outcome.error, outcome.code, outcome.milliseconds)
            if outcome.value is None
            else (outcome.value if asked.weaker else _related(outcome.value))
            for source, outcome in run_legs(legs, deadline=DEADLINE, waits=call.app.waits or call.owner.waits).items()
        ]
    )


def _skills(call: Call, asked: SearchEverything) -> SearchOut:
    found = call.app.skills.find_relevant_skills(asked.query, asked.limit, cut=not asked.weaker)
    return skills_out(asked.query, found)


def _memory(call: Call, asked: SearchEverything) -> SearchOut:
    found = call.app.memory.recall(asked.query, limit=asked.limit)
    return search_out("memory", asked.query, found if asked.weaker else cut(found))


def _devices(call: Call, asked: SearchEverything) -> SearchOut:
    started = time.perf_counter()
    if not call.app.has_home:
        return SearchOut(
            source="devices", mode="hybrid", degraded=False, reason=None, notice=None, hits=[], took_ms=0.0
        )
    answer = call.app.devices.ask(asked.query)
    group = devices_out(asked.query, answer, round((time.perf_counter() - started) * 1000, 3))
    return group.model_copy(update={"hits": group.hits[: asked.limit]})


def _documents(call: Call, asked: SearchEverything) -> SearchOut:
    found = call.app.documents.search(asked.project, asked.query, top_k=asked.limit)
    return search_out("documents", asked.query, found if asked.weaker else cut(found))


_ASKED: dict[str, Callable[[Call, SearchEverything], SearchOut]] = {
    "skills": _skills,
    "documents": _documents,
    "memory": _memory,
    "devices": _devices,
}


def _related(group: SearchOut) -> SearchOut:
    """Of an answer whose confidence cannot be told, without the hits that share neither meaning nor a word with the
    query: beside other sources the least bad is no answer."""
    if group.confidence is not None:
        return group
    kept = [hit for hit in group.hits if hit.matched or hit.score is None or hit.score >= MIN_SCORE]
    return group.model_copy(update={"hits": kept, "left_out": group.left_out + len(group.hits) - len(kept)})


def _failed(source: str, error: Exception | None, code: str, took: float) -> SearchOut:
    said = error.message if isinstance(error, HomingError) else "an unexpected failure; see the server's log"
    return SearchOut(
        source=source,
        mode="keyword",
        degraded=True,
        reason=f"{source}:{code}",
        notice=NoticeOut(zh=f"{source} 暂时无法搜索：{said}", en=f"{source} cannot be searched for now: {said}"),
        hits=[],
        took_ms=round(took, 3),
    )
