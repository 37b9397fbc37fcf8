"""`POST /examples`: something to look at in an empty folder."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from fastapi import APIRouter

from homing.app import Homing
from homing.errors import HomingError
from homing.server.access import Writing
from homing.server.jobs import Report
from homing.server.routes.jobs import JobTold, told

router = APIRouter(prefix="/examples", tags=["examples"])

PROJECT = "examples"
MEMORIES = (
    ("knowledge", "example-billing", "Billing: we decided to charge per seat, monthly, and to keep the free plan."),
    ("knowledge", "example-release", "发布前先在预览环境跑一遍回归测试，再合并到主分支。"),
    ("observation", "example-food", "用户不吃辣，对花生过敏，喜欢靠窗的位置。"),
    ("observation", "example-taste", "The user prefers short answers and dark mode."),
    ("reflection", "example-meetings", "上周的会议太长：以后先发议程，再开会。"),
    ("learning", "example-builds", "When a build fails on CI only, compare the versions of Python first."),
)


@router.post("", status_code=202)
def put_in_examples(caller: Writing) -> JobTold:
    """Put in a story and some notes, a few memories and, where there is none, a home; for an administrator skills too.

    A job does it. What has the name of an example is replaced; everything else stays.
    """

    def work(report: Report) -> dict[str, Any]:
        # The folder of the user stays open for as long as the job lasts.
        with as_file(files("homing") / "examples") as examples, caller.service.tenants.lease(caller.user) as app:
            return _put_in(examples, app, report, skills=caller.may("admin"))

    return told(caller.service.jobs.submit("examples", PROJECT, work, user=caller.user, shared=False).view)


def _put_in(examples: Path, app: Homing, report: Report, *, skills: bool) -> dict[str, Any]:
    library = sorted((examples / "library").glob("*.md"))
    total = len(library) + len(MEMORIES) + 2
    for done, path in enumerate(library):
        app.documents.save(PROJECT, path.stem, path.read_text(encoding="utf-8"))
        report(done, total)
    for done, (collection, entry_id, text) in enumerate(MEMORIES, start=len(library)):
        app.memory.remember(collection, text, entry_id=entry_id)
        report(done, total)
    if not app.devices.home.devices:
        app.devices.load(examples / "home.json")
    report(total - 1, total)
    found = _scan(examples / "skills", app) if skills else 0
    app.documents.flush()
    report(total, total)
    return {"documents": len(library), "memories": len(MEMORIES), "skills": found}


def _scan(skills: Path, app: Homing) -> int:
    # A scan marks the folders it has seen, so it gets folders of its own.
    folder = app.settings.data / "skills"
    shutil.copytree(skills, folder, dirs_exist_ok=True)
    try:
        app.skills.scan(folder)
        return len(app.skills.list_skills())
    except HomingError:
        # The store of the skills may not be installed; the rest is in all the same.
        return 0
