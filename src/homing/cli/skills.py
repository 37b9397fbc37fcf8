"""`homing skills`: scan folders of skills, find the right one, and put it into a prompt."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.calls import Answer, Data, Json, Weaker, answers, calling, checked, group, prints
from homing.cli.language import text
from homing.cli.lazy import reports, skills
from homing.cli.output import (
    in_language,
    note,
    print_json,
    print_left_out,
    print_notice,
    print_table,
    progress,
    say,
    score_text,
)

if TYPE_CHECKING:
    from homing.operations import Call
    from homing.operations.hits import SearchOut
    from homing.operations.skills import SkillsScanned
    from homing.skills import ScanReport

app = group("skills", "Find the right SKILL.md for a request.")

NOTHING = "no skills yet; index some with: homing skills scan FOLDER"

Query = Annotated[str, typer.Argument(help="What should be done, in Chinese or English.")]
Threshold = Annotated[float | None, typer.Option("--threshold", help="Leave out skills that score lower.")]


@app.command()
@prints("scan_skills")
def scan(
    folder: Annotated[Path, typer.Argument(help="A folder whose subfolders, at any depth, hold a SKILL.md.")],
    watch: Annotated[bool, typer.Option("--watch", help="Keep following changes until Ctrl-C.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Index the skills of a folder. Only new and changed skills are embedded."""

    def tell(done: SkillsScanned) -> None:
        print_json(done) if json else _show_scan(done, folder.absolute())
        # Whoever reads a pipe waits for the next report, not for a full buffer.
        sys.stdout.flush()

    def follow(report: ScanReport) -> None:
        if report.of("indexed") or report.of("removed"):
            tell(skills.scan_out(report))

    with calling(data) as call:
        with progress("Scanning") as step:
            scanned = skills.scan_skills(replace(call, report=step), checked(skills.SkillScan, folder=str(folder)))
        tell(scanned)
        if watch:
            with call.app.skills.watch(folder, on_report=follow):
                # Not for ever at once: a signal that another thread takes does not wake whoever waits for a lock.
                while not threading.Event().wait(1.0):
                    pass


@app.command()
@answers("find_skills")
def find(
    call: Call,
    query: Query,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Show at most this many skills.")] = 5,
    threshold: Threshold = None,
    weaker: Weaker = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show which text matched, and in which leg.")] = False,
) -> Answer:
    """Find the skills for a request, the best first."""
    found = skills.find_skills(
        call, checked(skills.SkillSearch, query=query, limit=limit, threshold=threshold, weaker=weaker)
    )
    return Answer(found, lambda: _show_found(found, explain=explain))


@app.command(name="list")
@answers("list_skills")
def list_skills(
    call: Call,
    limit: Annotated[int, typer.Option("--limit", "-n", help="List at most this many skills.")] = 100,
    offset: Annotated[int, typer.Option(help="Skip this many skills.")] = 0,
) -> Answer:
    """List the indexed skills."""
    found = skills.list_skills(call, checked(skills.SkillListing, limit=limit, offset=offset))

    def show() -> None:
        rows = [(one.name, one.description[:80], ", ".join(one.tags), one.path) for one in found.skills]
        print_table(("name", "description", "tags", "path"), rows, empty=NOTHING)
        if len(rows) < found.total:
            say("{shown} of {total}; --limit and --offset show the others", shown=len(rows), total=found.total)

    return Answer(found, show)


@app.command()
@answers("homing.cli.reports:SkillPrompt")
def prompt(
    call: Call,
    query: Query,
    budget: Annotated[int, typer.Option("--budget", help="How many tokens the block may take.")] = 1_500,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Include at most this many skills.")] = 10,
    threshold: Threshold = None,
) -> Answer:
    """Print a block about skills for a system prompt.

    The block keeps to a budget of tokens, and fences the descriptions of the skills as data.
    """
    from homing.skills import skill_prompt

    found = call.app.skills.find_relevant_skills(query, limit, threshold, cut=threshold is None)
    block = skill_prompt(found, budget)

    def show() -> None:
        if block.text:
            typer.echo(block.text)
        elif found.notice is not None:
            note("{notice}", notice=in_language(found.notice))

    return Answer(reports.SkillPrompt.of(block, skills=[hit.name for hit in block.skills]), show)


def _show_scan(done: SkillsScanned, folder: Path) -> None:
    from rich.text import Text

    rows = []
    for one in done.folders:
        what = [
            *one.repairs,
            *([one.reason] if one.reason else []),
            *(text("flagged: {flag}", flag=flag) for flag in one.flags),
        ]
        if what or one.outcome == "removed":
            path = Path(one.path)
            shown = path.relative_to(folder) if path.is_relative_to(folder) else path
            colour = "red" if one.outcome == "skipped" or one.flags else "yellow"
            rows.append((shown, Text(text(one.outcome), colour), "\n".join(what)))
    if rows:
        print_table(("folder", "outcome", "details"), rows)
    counts = ("indexed", "unchanged", "skipped", "removed", "repaired", "flagged")
    print_table((*counts, "seconds"), [[*(getattr(done, name) for name in counts), f"{done.seconds:.1f}"]])
    if done.degraded:
        say("The model is not available: until the next scan, new skills are found by their words only.")


def _show_found(found: SearchOut, *, explain: bool) -> None:
    from rich.text import Text

    print_notice(found.notice)
    print_notice(found.spelling())
    rows = []
    for hit in found.hits:
        about = Text(hit.text[:160])
        for why in hit.metadata["why"] if explain else ():
            words = f" [{', '.join(why['keywords'])}]" if why["keywords"] else ""
            about.append(f"\n{why['leg']} {why['part']} {why['value']:.2f}{words}: {why['text'][:80]}", "dim")
        rows.append((score_text(hit.score), Text(hit.metadata["name"], "bold"), about, hit.metadata["path"]))
    if rows:
        print_table(("score", "name", "description", "path"), rows)
    print_left_out(found.left_out, shown=bool(rows))
