"""Something to look at in an empty folder."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path

from homing.app import Homing
from homing.errors import HomingError
from homing.operations.models import Nothing, Output
from homing.operations.operation import Call, Job, Report, operation

PROJECT = "examples"
MEMORIES = (
    ("knowledge", "example-billing", "Billing: we decided to charge per seat, monthly, and to keep the free plan."),
    ("knowledge", "example-release", "发布前先在预览环境跑一遍回归测试，再合并到主分支。"),
    ("observation", "example-food", "用户不吃辣，对花生过敏，喜欢靠窗的位置。"),
    ("observation", "example-taste", "The user prefers short answers and dark mode."),
    ("reflection", "example-meetings", "上周的会议太长：以后先发议程，再开会。"),
    ("learning", "example-builds", "When a build fails on CI only, compare the versions of Python first."),
)


class ExamplesAdded(Output):
    """How much was added."""

    documents: int
    memories: int
    skills: int


@operation("write", http="POST /examples", tag="examples", job=Job("examples", lambda asked: PROJECT))
def add_examples(call: Call, asked: Nothing) -> ExamplesAdded:
    """Add a story and some notes, a few memories and, where there is none, a home; for an administrator skills too.

    A job does it. What has the name of an example is replaced; everything else stays.
    """
    with as_file(files("homing") / "examples") as examples:
        return _add(examples, call.app, call.report, skills=call.may("admin"))


def _add(examples: Path, app: Homing, report: Report, *, skills: bool) -> ExamplesAdded:
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
    return ExamplesAdded(documents=len(library), memories=len(MEMORIES), skills=found)


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
