"""`homing demo`: a guided tour of the main jobs on example data."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homing.cli.found import as_json
from homing.cli.options import Data, Json
from homing.cli.output import console, excerpt, print_json, progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from homing.cli.tour import Tour
    from homing.records import Hit, Retrieved

FOLDER = "demo"
LEFT = (0, 0, 0, 3)
"""Answers stand to the right of the number of their heading."""


def run_demo(data: Data = None, json: Json = False) -> None:
    """A guided tour on example data.

    Skills, a story, notes, a memory, a home, and a search without its model. What it shows stays in the data folder
    (by default ~/.homing/demo), so that the page can open it.
    """
    from homing.app import open_app
    from homing.config import Settings, load

    folder = data or _own_folder(load().settings.models.expanduser().parent / FOLDER)
    if data is None:
        _begin_anew_where_too_old(folder)
    # Examples belong into a folder of their own, never into the store or before the model that somebody set up.
    with progress("A tour on example data", quiet=json) as step, open_app(folder, settings=Settings()) as app:
        from homing.cli.tour import take_tour

        step(0, 1)
        tour = take_tour(app)
    page = f"homing serve --open --data {shlex.quote(str(folder))}"
    if json:
        print_json(_as_json(tour, page))
    else:
        _show(tour, page, console())


def _own_folder(wanted: Path) -> Path:
    """The wanted folder, or a temporary one where the home directory cannot be written."""
    try:
        wanted.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="homing-demo-"))
    return wanted


def _begin_anew_where_too_old(folder: Path) -> None:
    """Remove what the tour of an earlier edition left in its own folder: there is nothing of anybody's in it."""
    from homing.app import open_app
    from homing.config import Settings
    from homing.errors import StoreTooOld

    try:
        with open_app(folder, settings=Settings()) as app:
            assert app.existing_database is None or app.database
    except StoreTooOld:
        shutil.rmtree(folder)


def _as_json(tour: Tour, page: str) -> dict[str, Any]:
    from homing.cli.tour import WITHOUT_MODEL, WORD

    return {
        "model": tour.model,
        "skills": dict(tour.skills),
        "edit": tour.edit,
        "answers": {query: as_json(query, found) for query, found in tour.answers.items()},
        "keyword": as_json(WORD, tour.keyword),
        "degraded": as_json(WITHOUT_MODEL, tour.degraded),
        "recalled": {query: as_json(query, found) for query, found in tour.recalled.items()},
        "devices": {sentence: answer.to_dict() for sentence, answer in tour.devices.items()},
        "seconds": round(tour.seconds, 2),
        "page": page,
    }


def _show(tour: Tour, page: str, out: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from homing.cli.tour import QUESTIONS, WITHOUT_MODEL, WORD

    out.print(
        Text.assemble(("Homing", "bold"), f" finds the one thing a request is about. Offline, with {tour.model}.")
    )
    _heading(out, 1, "Skills · 技能", "the SKILL.md that an agent should load")
    rows = _rows()
    for query, found in tour.skills.items():
        best = found[0]
        rows.add_row(Text(query, "bold"), Text(best.name, "cyan"), f"{best.score:.2f}", Text(best.description, "dim"))
    out.print(Padding(rows, LEFT))
    _heading(out, 2, "Documents · 文档", "a story and some notes, by meaning and by words")
    told = [(query, note, tour.answers[query]) for _, query, note in QUESTIONS]
    out.print(Padding(_passages([*told, (WORD, "one word, by keywords alone", tour.keyword)]), LEFT))
    edited = f"   One sentence of the story was changed: {tour.edit.embedded} of {tour.edit.paragraphs} paragraphs "
    out.print(f"{edited}embedded again.")
    _heading(out, 3, "Without the model · 模型不可用", "an answer all the same, and it says so")
    out.print(Padding(_passages([(WITHOUT_MODEL, "the model was taken away", tour.degraded)]), LEFT))
    out.print(Text(f"   {tour.degraded.notice}", "yellow"))
    _heading(out, 4, "Memory · 记忆", "what was said earlier, when it matters")
    rows = _rows()
    for query, recalled in tour.recalled.items():
        for hit in recalled:
            rows.add_row(Text(query, "bold"), Text(hit.collection, "cyan"), _score(hit.score), Text(hit.text))
    out.print(Padding(rows, LEFT))
    _heading(out, 5, "Home · 家", "the devices that a sentence means; or a question back")
    rows = _rows()
    for sentence, answer in tour.devices.items():
        commands = dict.fromkeys(one.command.id for one in answer.candidates if one.command is not None)
        names = "、".join(device.name for device in answer.devices)
        meant = Text(names, "cyan") if names else Text(answer.question, "yellow")
        rows.add_row(Text(sentence, "bold"), Text(", ".join(commands) if names else "–"), "", meant)
    out.print(Padding(rows, LEFT))
    out.print()
    out.print(f"All of it took {tour.seconds:.1f} s. Look at it in the browser:")
    out.print(Text(f"   {page}", "bold green"), soft_wrap=True)
    out.print('Or search your own notes:  homing search "孤独的感觉" path/to/notes', markup=False)


def _heading(out: Console, number: int, title: str, about: str) -> None:
    from rich.text import Text

    out.print()
    out.print(Text.assemble((f"{number}  {title}", "bold magenta"), (f"   {about}", "dim")))


def _rows() -> Table:
    from rich.table import Column, Table

    asked = Column(ratio=3, overflow="fold")
    return Table(
        asked,
        Column(no_wrap=True),
        Column(justify="right", no_wrap=True),
        Column(ratio=4, overflow="fold"),
        box=None,
        show_header=False,
        expand=True,
        padding=(0, 2, 0, 0),
        pad_edge=False,
    )


def _passages(rows: list[tuple[str, str, Retrieved]]) -> Table:
    from rich.text import Text

    table = _rows()
    for query, note, found in rows:
        hit = found[0] if found else None
        passage = Text("nothing found", "dim") if hit is None else excerpt(query, _around_the_match(hit), 72)
        if hit is not None:
            passage.append(f"  {hit.metadata['document_id']}", "cyan")
        mode = Text(found.mode, "yellow" if found.degraded else "dim")
        asked = Text.assemble((query, "bold"), "\n", (note, "dim"))
        table.add_row(asked, mode, _score(None if hit is None else hit.score), passage)
    return table


def _around_the_match(hit: Hit) -> Hit:
    from dataclasses import replace

    return replace(hit, text=hit.metadata.get("snippet") or hit.text)


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.2f}"
