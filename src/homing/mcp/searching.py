"""Passages from one project or from all of them, and how an answer is announced."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from homing.errors import NotFound
from homing.mcp.addresses import document_uri
from homing.mcp.results import Passage
from homing.records import Hit, Mode, Notice, Retrieved
from homing.skills.injection import suspicions

if TYPE_CHECKING:
    from homing.app import Homing


class Answered(Protocol):
    """What every search says about itself."""

    @property
    def degraded(self) -> bool: ...

    @property
    def notice(self) -> Notice | None: ...


def told(answer: Answered, count: int, what: str) -> str:
    """The line above the results."""
    plural = what.removesuffix("y") + "ies" if what.endswith("y") else f"{what}s"
    line = f"{count} {what if count == 1 else plural} found."
    return f"{line} {answer.notice}" if answer.notice is not None else line


def passages_of(
    app: Homing, query: str, *, project: str, limit: int, mode: Mode, threshold: float | None
) -> tuple[Retrieved, list[Passage]]:
    """The passages that a query is about, the best first; of all projects where none is named. Raises NotFound."""
    known = [one.id for one in app.documents.projects()]
    if project and project not in known:
        raise NotFound(f"there is no project {project!r}; there are: {', '.join(known) or 'none'}")
    projects = [project] if project else known
    answers = {one: app.documents.search(one, query, mode=mode, top_k=limit, min_score=threshold) for one in projects}
    hits = [(one, hit) for one, answer in answers.items() for hit in answer]
    if len(projects) > 1:
        # Places in two projects cannot be compared, nearness can.
        hits.sort(key=lambda pair: (-(pair[1].score or 0.0), -pair[1].fused, pair[0], pair[1].id))
    whole = _together(list(answers.values()), mode)
    return whole, [_passage(one, hit) for one, hit in hits[:limit]]


def _together(answers: list[Retrieved], mode: Mode) -> Retrieved:
    """How the projects together were answered: degraded where one of them was."""
    worst = next((answer for answer in answers if answer.degraded), answers[0] if answers else Retrieved((), mode))
    return replace(worst, hits=())


def _passage(project: str, hit: Hit) -> Passage:
    document = str(hit.metadata.get("document_id", ""))
    return Passage(
        project=project,
        document=document,
        text=hit.text,
        start=int(hit.metadata.get("start_offset", 0)),
        end=int(hit.metadata.get("end_offset", 0)),
        score=None if hit.score is None else round(hit.score, 4),
        keywords=list(hit.keywords),
        uri=document_uri(project, document),
        flags=list(suspicions(hit.text)),
    )
