"""`homing skills`: scan folders of skills, find the right one, and put it into a prompt."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.opened import opened
from homing.cli.options import Data, Json
from homing.cli.output import console, print_json, progress

if TYPE_CHECKING:
    from homing.skills import FoundSkills, ScanReport

app = typer.Typer(help="The right SKILL.md for a request.", no_args_is_help=True, rich_markup_mode=None)

Query = Annotated[str, typer.Argument(help="What is to be done, in Chinese or English.")]
Threshold = Annotated[float | None, typer.Option("--threshold", help="Leave out skills that score less.")]


@app.command()
def scan(
    folder: Annotated[Path, typer.Argument(help="A folder with skills: folders that hold a SKILL.md, at any depth.")],
    watch: Annotated[bool, typer.Option("--watch", help="Go on following changes, until Ctrl-C.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Bring the index up to date with a folder. Only what is new or changed is embedded."""

    def tell(report: ScanReport) -> None:
        print_json({**_plain(report), "counts": report.counts}) if json else _show_report(report)
        # Whoever reads a pipe waits for the next report, not for a full buffer.
        sys.stdout.flush()

    with opened(data) as homing:
        with progress("Scanning", quiet=json) as step:
            report = homing.skills.scan(folder, progress=step)
        tell(report)
        if not watch:
            return
        with homing.skills.watch(folder, on_report=lambda found: tell(found) if _did_something(found) else None):
            threading.Event().wait()


@app.command()
def find(
    query: Query,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many skills at most.")] = 5,
    threshold: Threshold = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show which text matched, by which leg.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show the skills that a request needs, the best first."""
    with opened(data) as homing:
        found = homing.skills.find_relevant_skills(query, limit, threshold)
    if json:
        print_json(found)
    else:
        _show_found(found, explain=explain)


@app.command(name="list")
def list_skills(data: Data = None, json: Json = False) -> None:
    """List the skills that are indexed."""
    with opened(data) as homing:
        skills = homing.skills.list_skills()
        models = {record.id: record.model for record in homing.skills.records()} if json else {}
    if json:
        print_json([dict(one.metadata) | {"id": one.id, "model": models.get(one.id, "")} for one in skills])
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("name", "description", "tags", "path")
    for skill in skills:
        row = (skill.name, skill.description[:80], ", ".join(skill.tags), str(skill.metadata.get("path", "")))
        table.add_row(*map(Text, row))
    console().print(table)


@app.command()
def prompt(
    query: Query,
    budget: Annotated[int, typer.Option("--budget", help="How many tokens the block may take.")] = 1_500,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many skills at most.")] = 10,
    threshold: Threshold = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Print the block about skills for a system prompt. It keeps to a budget, with descriptions fenced as data."""
    from homing.skills import skill_prompt

    with opened(data) as homing:
        found = homing.skills.find_relevant_skills(query, limit, threshold)
    block = skill_prompt(found, budget)
    if json:
        names = [hit.name for hit in block.skills]
        print_json({"text": block.text, "skills": names, "tokens": block.tokens, "truncated": block.truncated})
    elif block.text:
        typer.echo(block.text)
    elif found.notice is not None:
        console(stderr=True).print(str(found.notice))


def _did_something(report: ScanReport) -> bool:
    return bool(report.of("indexed") or report.of("removed"))


def _plain(report: ScanReport) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(report)


def _show_report(report: ScanReport) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    told = [
        entry for entry in report.entries if entry.repairs or entry.flags or entry.outcome in ("skipped", "removed")
    ]
    if told:
        table = Table("folder", "outcome", "what")
        for entry in told:
            what = [*entry.repairs, *([entry.reason] if entry.reason else []), *(f"flagged: {f}" for f in entry.flags)]
            colour = "red" if entry.outcome == "skipped" or entry.flags else "yellow"
            shown = Path(entry.path)
            path = shown.relative_to(report.folder) if shown.is_relative_to(report.folder) else shown
            table.add_row(Text(str(path)), Text(entry.outcome, colour), Text("\n".join(what)))
        out.print(table)
    summary = Table(*report.counts, "seconds")
    summary.add_row(*map(str, report.counts.values()), f"{report.seconds:.1f}")
    out.print(summary)
    if report.degraded:
        out.print(Text("The model is not available: found by keywords until the next scan.", "yellow"))


def _show_found(found: FoundSkills, *, explain: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    if found.notice is not None:
        out.print(Text(str(found.notice), "yellow"))
    if not found:
        return
    table = Table("score", "name", "description", "path")
    for hit in found:
        about = Text(hit.description[:160])
        for why in hit.why if explain else ():
            words = f" [{', '.join(why.keywords)}]" if why.keywords else ""
            about.append(f"\n{why.leg} {why.part} {why.value:.2f}{words}: {why.text[:80]}", "dim")
        table.add_row(f"{hit.score:.2f}", Text(hit.name, "bold"), about, Text(hit.path))
    out.print(table)
