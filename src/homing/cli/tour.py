"""What `homing demo` does, for real, on example data in both languages."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from homing.app import Homing
from homing.devices import Answer
from homing.documents.service import DocumentService
from homing.embedders.local import LocalProvider
from homing.engine import Engine
from homing.records import Retrieved

if TYPE_CHECKING:
    from homing.skills import FoundSkills

EXAMPLES = Path(__file__).parent.parent / "examples"
STORY, NOTES = "story", "notes"
CHAPTER = "灯塔"
EDITED = ("“今天也没有人来。”", "“今天还是没有人来，连海鸟也没有。”")

SKILLS = ("帮我提交代码", "will I need an umbrella tomorrow", "把这份合同翻译成 English")
QUESTIONS = (
    (STORY, "孤独的感觉", "a feeling, in a story that never uses the word"),
    (NOTES, "怎么撤销已经推送的提交", "asked in Chinese, answered in English"),
    (NOTES, "what to pack for a trip", "asked in English, answered in traditional Chinese"),
    (NOTES, "新版本出错了怎么 rollback", "both languages in one sentence"),
)
WORD = "漂流木"
WITHOUT_MODEL = "孤独的椅子"
MEMORIES = (
    ("observation", "demo-food", "用户不吃辣，对花生过敏"),
    ("knowledge", "demo-invoices", "Invoices are sent on the first working day of the month."),
    ("learning", "demo-billing", "Answer billing questions with a date, not with a promise."),
)
RECALLED = ("点菜要注意什么", "什么时候开发票")
SPOKEN = ("打开除卧室以外的灯", "turn the 老伙计 off", "把卧室空调调到26度", "打开阳台的灯")


@dataclass(frozen=True, slots=True)
class Edit:
    """What saving an edited story again did: paragraphs in all, and those that were embedded again."""

    paragraphs: int
    embedded: int


@dataclass(frozen=True, slots=True)
class Tour:
    """Everything that was asked on the tour, with its answers."""

    model: str
    skills: Mapping[str, FoundSkills]
    edit: Edit
    answers: Mapping[str, Retrieved]
    keyword: Retrieved
    degraded: Retrieved
    recalled: Mapping[str, Retrieved]
    devices: Mapping[str, Answer]
    seconds: float


def take_tour(app: Homing) -> Tour:
    """Fill the data folder with the examples and ask about them. Taken twice, it finds everything as it was."""
    started = time.perf_counter()
    edit = _write(app)
    for collection, entry_id, text in MEMORIES:
        app.memory.remember(collection, text, entry_id=entry_id)
    app.devices.load(EXAMPLES / "home.json")
    devices = {sentence: app.devices.ask(sentence) for sentence in SPOKEN}
    app.engine.flush()
    app.documents.flush()
    search = app.documents.search
    return Tour(
        model=app.embedder.id if app.embedder is not None else "keywords only",
        edit=edit,
        answers={
            query: search(project, query, mode="hybrid", top_k=1, min_score=None) for project, query, _ in QUESTIONS
        },
        keyword=search(STORY, WORD, mode="keyword", top_k=1),
        degraded=_without_model(app),
        recalled={query: app.memory.recall(query, limit=1) for query in RECALLED},
        devices=devices,
        skills=_find_skills(app, app.settings.data / "skills"),
        seconds=time.perf_counter() - started,
    )


def _find_skills(app: Homing, folder: Path) -> dict[str, FoundSkills]:
    # A scan marks the folders it has seen, so it gets folders of its own.
    shutil.copytree(EXAMPLES / "skills", folder, dirs_exist_ok=True)
    app.skills.scan(folder)
    return {query: app.skills.find_relevant_skills(query, limit=1) for query in SKILLS}


def _write(app: Homing) -> Edit:
    library = {path.stem: path.read_text(encoding="utf-8") for path in (EXAMPLES / "library").glob("*.md")}
    story = library.pop(CHAPTER)
    app.documents.save(STORY, CHAPTER, story)
    edit = app.documents.save(STORY, CHAPTER, story.replace(*EDITED))
    for name, text in library.items():
        app.documents.save(NOTES, name, text)
    return Edit(len(edit.changed) + len(edit.unchanged) + len(edit.moved), len(edit.changed))


def _without_model(app: Homing) -> Retrieved:
    """The same documents with a model that cannot load, to show what people see then."""
    documents = DocumentService(Engine(app.store, LocalProvider(Path("no-such-model"))))
    return documents.search(STORY, WITHOUT_MODEL, mode="hybrid", top_k=1)
