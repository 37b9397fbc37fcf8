"""`/skills`: what is indexed, and the right one for a request."""

from __future__ import annotations

from os.path import isdir
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Query as Parameter
from pydantic import Field

from homing.errors import NotFound
from homing.server.access import Administering, Reading
from homing.server.body import Answer, Body, Limit, Name, Query
from homing.server.found import FoundGroup, skills_group
from homing.server.jobs import Report
from homing.server.routes.jobs import JobTold, told
from homing.skills.skill import Skill

router = APIRouter(prefix="/skills", tags=["skills"])


class SkillTold(Answer):
    """A skill as its author describes it; `id` is its folder, or its name where it has none."""

    id: str = Field(examples=["/srv/skills/git-commit"])
    name: str = Field(examples=["git-commit"])
    description: str = Field(examples=["生成 Git 提交信息 / write commit messages"])
    tags: list[str] = Field(examples=[["git"]])
    path: str = Field(examples=["/srv/skills/git-commit"])


class SkillWhole(SkillTold):
    """A skill with the text of its SKILL.md."""

    body: str
    metadata: dict[str, Any]


class SkillList(Answer):
    """A page of the indexed skills."""

    total: int
    skills: list[SkillTold]


class SkillSearch(Body):
    """What is to be done."""

    query: Query = Field(examples=["帮我提交代码"])
    limit: Limit = Field(5, examples=[5])
    threshold: float | None = Field(None, ge=0, le=1, description="Leave out what scores lower.", examples=[0.3])


class SkillScan(Body):
    """A folder on the server, with folders that hold a SKILL.md."""

    folder: Name = Field(examples=["/srv/skills"])


@router.get("")
def list_skills(
    caller: Reading,
    limit: Annotated[int, Parameter(ge=1, le=1000)] = 100,
    offset: Annotated[int, Parameter(ge=0, le=1_000_000)] = 0,
) -> SkillList:
    """The indexed skills, by id."""
    skills = caller.app.skills.list_skills()
    return SkillList(total=len(skills), skills=[_told(one) for one in skills[offset : offset + limit]])


@router.post("/search")
def find_skills(body: SkillSearch, caller: Reading) -> FoundGroup:
    """The skills that fit a request, the best first."""
    caller.service.log_query(body.query)
    found = caller.app.skills.find_relevant_skills(body.query, body.limit, body.threshold)
    return caller.service.metrics.searched(skills_group(body.query, found))


@router.post("/scan", status_code=202)
def scan_skills(body: SkillScan, caller: Administering) -> JobTold:
    """Bring the index up to date with a folder on the server, by a job; the result counts what became of each."""
    skills = caller.app.skills
    folder = Path(body.folder).absolute()
    if not isdir(folder):
        raise NotFound(f"there is no folder {body.folder!r} on the server")

    def work(report: Report) -> dict[str, Any]:
        scanned = skills.scan(folder, progress=report)
        skipped = [{"path": one.path, "reason": one.reason} for one in scanned.of("skipped")]
        return {**scanned.counts, "seconds": round(scanned.seconds, 3), "skipped_folders": skipped[:100]}

    job = caller.service.jobs.submit("scan", str(folder), work, user=caller.user, shared=True)
    return told(job.view)


@router.get("/{skill_id:name}")
def get_skill(skill_id: str, caller: Reading) -> SkillWhole:
    """One skill by its id or name, with the text of its SKILL.md."""
    skill = caller.app.skills.get_skill(skill_id)
    return SkillWhole(**_told(skill).model_dump(), body=skill.body, metadata=dict(skill.metadata))


def _told(skill: Skill) -> SkillTold:
    return SkillTold(
        id=skill.id, name=skill.name, description=skill.description, tags=list(skill.tags), path=skill.path
    )
