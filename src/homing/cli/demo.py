"""`homing demo`: a guided tour of the main jobs on example data, in both languages."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from homing.cli.calls import Answer, Data, answers, checked
from homing.cli.language import text
from homing.cli.lazy import devices, documents, memory, reports, skills
from homing.cli.output import console, excerpt, in_language, progress, say, score_text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

    from homing.app import Homing
    from homing.cli.reports import Edit, Tour
    from homing.operations import Call
    from homing.operations.hits import SearchOut

FOLDER = "demo"
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


@answers("homing.cli.reports:Tour")
def run_demo(data: Data = None) -> Answer:
    """Take a guided tour on example data.

    It shows skills, a story, notes, a memory, a home, and a search without its model. The examples stay in the data
    folder (~/.homing/demo by default), so that the web page can show them.
    """
    from homing.app import open_app
    from homing.config import Settings, load

    folder = data or _own_folder(load().settings.models.expanduser().parent / FOLDER)
    page = f"homing serve --open --data {shlex.quote(str(folder))}"
    # Examples belong into a folder of their own, never into the store or before the model that somebody set up.
    with progress("A tour on example data") as step, open_app(folder, settings=Settings()) as app:
        step(0, 1)
        tour = _take_tour(app, page)
    return Answer(tour, lambda: _show(tour, console()))


def _own_folder(wanted: Path) -> Path:
    """The wanted folder, or a temporary one where the home directory cannot be written."""
    try:
        wanted.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="homing-demo-"))
    return wanted


def _take_tour(app: Homing, page: str) -> Tour:
    """Fill the data folder with the examples and ask about them. Taken twice, it finds everything as it was."""
    from homing.operations import Call

    started, call = time.perf_counter(), Call(app, app)
    edit = _write(app)
    for collection, entry_id, fact in MEMORIES:
        app.memory.remember(collection, fact, entry_id=entry_id)
    app.devices.load(EXAMPLES / "home.json")
    spoken = {sentence: devices.ask_devices(call, checked(devices.DeviceAsk, text=sentence)) for sentence in SPOKEN}
    app.engine.flush()
    app.documents.flush()
    return reports.Tour(
        model=app.embedder.id if app.embedder is not None else "keywords only",
        edit=edit,
        answers={query: _search(call, project, query) for project, query, _ in QUESTIONS},
        keyword=_search(call, STORY, WORD, mode="keyword"),
        degraded=_without_model(app),
        recalled={query: memory.recall(call, checked(memory.Recall, query=query, limit=1)) for query in RECALLED},
        devices=spoken,
        skills=_find_skills(call, app.settings.data / "skills"),
        seconds=round(time.perf_counter() - started, 2),
        page=page,
    )


def _write(app: Homing) -> Edit:
    library = {path.stem: path.read_text(encoding="utf-8") for path in (EXAMPLES / "library").glob("*.md")}
    story = library.pop(CHAPTER)
    app.documents.save(STORY, CHAPTER, story)
    edit = app.documents.save(STORY, CHAPTER, story.replace(*EDITED))
    for name, written in library.items():
        app.documents.save(NOTES, name, written)
    paragraphs = len(edit.changed) + len(edit.unchanged) + len(edit.moved)
    return reports.Edit(paragraphs=paragraphs, embedded=len(edit.changed))


def _search(call: Call, project: str, query: str, mode: str = "hybrid") -> SearchOut:
    # The tour shows the best hit, however weak.
    return documents.search_documents(
        call, checked(documents.DocumentSearch, project=project, query=query, mode=mode, limit=1, min_score=0.0)
    )


def _without_model(app: Homing) -> SearchOut:
    """The same documents with a model that cannot load, to show what people see then."""
    from homing.documents.service import DocumentService
    from homing.embedders.local import LocalProvider
    from homing.engine import Engine
    from homing.operations.hits import search_out

    library = DocumentService(Engine(app.store, LocalProvider(Path("no-such-model"))))
    found = library.search(STORY, WITHOUT_MODEL, mode="hybrid", top_k=1)
    return search_out("documents", WITHOUT_MODEL, found)


def _find_skills(call: Call, folder: Path) -> dict[str, SearchOut]:
    # A scan marks the folders it has seen, so it gets folders of its own.
    shutil.copytree(EXAMPLES / "skills", folder, dirs_exist_ok=True)
    call.app.skills.scan(folder)
    return {query: skills.find_skills(call, checked(skills.SkillSearch, query=query, limit=1)) for query in SKILLS}


def _show(tour: Tour, out: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    def part(number: int, title: str, about: str, rows: list[list[RenderableType]]) -> None:
        out.print()
        out.print(Text.assemble((f"{number}  {title}", "bold magenta"), (f"   {about}", "dim")))
        # Answers stand to the right of the number of their heading.
        out.print(Padding(_table(rows), (0, 0, 0, 3)))

    say("Homing finds the one thing that a request is about. It runs offline, with {model}.", model=tour.model)
    chosen = [(query, found.hits[0]) for query, found in tour.skills.items()]
    part(1, text("Skills"), text("the SKILL.md that an agent should load"), [
        [Text(query, "bold"), Text(hit.metadata["name"], "cyan"), score_text(hit.score), Text(hit.text, "dim")]
        for query, hit in chosen
    ])  # fmt: skip
    passages = [_passage(query, text(about), tour.answers[query]) for _, query, about in QUESTIONS]
    passages.append(_passage(WORD, text("one word, by keywords only"), tour.keyword))
    part(2, text("Documents"), text("a story and some notes, by meaning and by words"), passages)
    say(
        "   One sentence of the story was changed: {one.embedded} of {one.paragraphs} paragraphs embedded again.",
        one=tour.edit,
    )
    degraded = [_passage(WITHOUT_MODEL, text("the model was taken away"), tour.degraded)]
    part(3, text("Without the model"), text("there is still an answer, and it says so"), degraded)
    if tour.degraded.notice is not None:
        notice = Text(in_language(tour.degraded.notice), "yellow")
        out.print(Padding(notice, (0, 0, 0, 3)))
    part(4, text("Memory"), text("what was said earlier, when it matters"), [
        [Text(query, "bold"), Text(hit.metadata["collection"], "cyan"), score_text(hit.score), Text(hit.text)]
        for query, found in tour.recalled.items() for hit in found.hits
    ])  # fmt: skip
    spoken: list[list[RenderableType]] = []
    for sentence, answer in tour.devices.items():
        meant = {one.name: one.command for step in answer.steps for one in step.candidates if one.id in answer.devices}
        commands = ", ".join(dict.fromkeys(command for command in meant.values() if command))
        named = Text("、".join(meant), "cyan") if meant else Text(answer.question, "yellow")
        spoken.append([Text(sentence, "bold"), Text(commands or "–"), "", named])
    part(5, text("Home"), text("the devices that a sentence means, or a question to the speaker"), spoken)
    out.print()
    say("The tour took {seconds:.1f} s. See it in the browser:", seconds=tour.seconds)
    out.print(Text(f"   {tour.page}", "bold green"), soft_wrap=True)
    say('Or search your own notes:  homing search "孤独的感觉" path/to/notes')
    say("The guide begins with:     homing docs")


def _table(rows: list[list[RenderableType]]) -> Table:
    from rich.table import Column, Table

    table = Table(
        Column(ratio=3, overflow="fold"),
        Column(no_wrap=True),
        Column(justify="right", no_wrap=True),
        Column(ratio=4, overflow="fold"),
        box=None,
        show_header=False,
        expand=True,
        padding=(0, 2, 0, 0),
        pad_edge=False,
    )
    for row in rows:
        table.add_row(*row)
    return table


def _passage(query: str, about: str, found: SearchOut) -> list[RenderableType]:
    from rich.text import Text

    hit = found.hits[0] if found.hits else None
    passage = Text(text("nothing found"), "dim") if hit is None else excerpt(hit, 72)
    if hit is not None:
        passage.append(f"  {hit.metadata['document_id']}", "cyan")
    mode = Text(text(found.mode), "yellow" if found.degraded else "dim")
    asked = Text.assemble((query, "bold"), "\n", (about, "dim"))
    return [asked, mode, score_text(None if hit is None else hit.score), passage]
