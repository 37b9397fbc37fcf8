"""Passages from one project or from all of them, and how an answer is announced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from homing.errors import NotFound
from homing.mcp.addresses import document_uri
from homing.mcp.results import Passage
from homing.records import Hit, Mode, Notice, Retrieved
from homing.skills.skill_file import suspicions

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
    if project and project not in (known := [one.id for one in app.documents.projects()]):
        raise NotFound(f"there is no project {project!r}; there are: {', '.join(known) or 'none'}")
    found = app.documents.search(project or None, query, mode=mode, top_k=limit, min_score=threshold)
    return found, [_passage(hit) for hit in found]


def _passage(hit: Hit) -> Passage:
    project, document = str(hit.metadata["project_id"]), str(hit.metadata["document_id"])
    return Passage(
        project=project,
        document=document,
        text=hit.text,
        start=int(hit.metadata["start_offset"]),
        end=int(hit.metadata["end_offset"]),
        score=None if hit.score is None else round(hit.score, 4),
        keywords=list(hit.keywords),
        uri=document_uri(project, document),
        flags=list(suspicions(hit.text)),
    )
