"""`homing demo`: the main jobs on example data, for real, in a minute."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from homing.cli.options import Json
from homing.cli.output import console, excerpt, print_json, progress
from homing.records import Retrieved

if TYPE_CHECKING:
    from rich.table import Table

    from homing.devices import Answer
    from homing.folders.index import FolderIndex

EXAMPLES = Path(__file__).parent.parent / "examples"

QUESTIONS = (
    ("孤独的感觉", "the feeling, in a story that never uses the word"),
    ("怎样让炒鸡蛋更嫩", "a question in Chinese"),
    ("怎么撤销已经推送的提交", "asked in Chinese, answered in English"),
    ("what to pack for a trip", "asked in English, answered in traditional Chinese"),
    ("新版本出错了怎么 rollback", "both languages in one sentence"),
    ("is a coffee in the afternoon a bad idea", "a question in English"),
)

MEMORIES = (
    ("observation", "用户不吃辣，对花生过敏"),
    ("knowledge", "Invoices are sent on the first working day of the month."),
    ("learning", "Answer billing questions with a date, not with a promise."),
)
RECALLED = ("点菜要注意什么", "什么时候开发票")
SPOKEN = ("打开除卧室以外的灯", "turn the 老伙计 off", "把卧室空调调到26度", "打开阳台的灯")


def run_demo(json: Json = False) -> None:
    """The main jobs on example data: search across languages and without the model, remember and recall, ask a home."""
    from homing.app import open_app

    with tempfile.TemporaryDirectory(prefix="homing-demo-") as place:
        library = Path(place) / "library"
        shutil.copytree(EXAMPLES / "library", library)
        with open_app(Path(place) / "data") as app:
            index = app.folder(library)
            with progress("Indexing", quiet=json) as step:
                refreshed = index.refresh(step)
            options = replace(app.search_options, limit=1)
            answers = {query: index.search(query, options) for query, _ in QUESTIONS}
            keywords = index.search("漂流木", replace(options, mode="keyword"))
            degraded = _without_model(index).search("孤独的椅子", options)
            for collection, text in MEMORIES:
                app.rag.remember(collection, text)
            app.rag.buffer.flush()
            recalled = {query: app.rag.retrieve(query, limit=1) for query in RECALLED}
            app.devices.load(EXAMPLES / "home.json")
            spoken = {sentence: app.devices.ask(sentence) for sentence in SPOKEN}
    if json:
        told = {"answers": answers, "keyword": keywords, "degraded": degraded, "passages": refreshed.passages}
        print_json({**told, "recalled": recalled, "devices": {text: one.to_dict() for text, one in spoken.items()}})
        return
    out = console()
    out.print(f"Indexed {refreshed.added} files, {refreshed.passages} passages, offline, with {_model(index)}.\n")
    out.print(_table([(query, note, answers[query]) for query, note in QUESTIONS]))
    out.print(_table([("漂流木", "by keywords alone", keywords), ("孤独的椅子", "the model taken away", degraded)]))
    out.print(f"The last answer is marked degraded: {degraded.notice}\n")
    out.print(_memory_table(recalled))
    out.print(_home_table(spoken))
    out.print('Try it on your own notes:  homing search "孤独的感觉" path/to/notes')


def _model(index: FolderIndex) -> str:
    return index.embedder.id if index.embedder is not None else "keywords only"


def _without_model(index: FolderIndex) -> FolderIndex:
    """The same index with a model that cannot load, to show what people see then."""
    from homing.embedders.local import LocalProvider
    from homing.folders.index import FolderIndex

    return FolderIndex(index.folder, store=index.store, embedder=LocalProvider(Path("no-such-model")))


def _memory_table(recalled: dict[str, Retrieved]) -> Table:
    from rich.table import Column, Table

    table = Table("asked later", Column("recalled", overflow="fold"), "from", "score", expand=True, title="Memory")
    for query, found in recalled.items():
        for hit in found:
            table.add_row(query, hit.text, hit.collection, "–" if hit.score is None else f"{hit.score:.2f}")
    return table


def _home_table(spoken: dict[str, Answer]) -> Table:
    from rich.table import Column, Table

    table = Table(
        "said", Column("devices", overflow="fold"), "command, or what is asked back", expand=True, title="Home"
    )
    for sentence, answer in spoken.items():
        commands = dict.fromkeys(one.command.id for one in answer.candidates if one.command is not None)
        names = "、".join(device.name for device in answer.devices) or "–"
        table.add_row(sentence, names, ", ".join(commands) if answer.devices else answer.question)
    return table


def _table(rows: list[tuple[str, str, Retrieved]]) -> Table:
    from rich.table import Column, Table
    from rich.text import Text

    table = Table("question", Column("best passage", overflow="fold"), "score", "mode", "ms", expand=True)
    for query, note, found in rows:
        hit = found[0] if found else None
        passage = Text("nothing found")
        if hit is not None:
            passage = excerpt(query, hit, 100).append(f"\n{hit.metadata['path']}:{hit.metadata['line']}", "cyan")
        table.add_row(
            Text.assemble((query, "bold"), "\n", (note, "dim")),
            passage,
            "–" if hit is None or hit.score is None else f"{hit.score:.2f}",
            Text(found.mode, "yellow" if found.degraded else ""),
            f"{found.timings['total_ms']:.0f}",
        )
    return table
