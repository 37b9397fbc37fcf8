"""`homing doctor`: prove that everything works."""

from __future__ import annotations

from typing import Annotated

import typer

from homing.cli.options import Data, Json
from homing.cli.output import console, print_json

MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "bold red"), "skip": ("–", "dim")}


def run_doctor(
    live: Annotated[bool, typer.Option("--live", help="Also ask a model behind an API; may cost money.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Check that everything works, or say how to mend it.

    Writes and finds probes in both languages, and looks through the data folder. Exit code 1 if something is broken.
    """
    from homing.config import load
    from homing.doctor import diagnose, healthy

    settings = load(overrides={} if data is None else {"data": str(data)}).settings
    findings = diagnose(settings, live=live)
    if json:
        print_json({"healthy": healthy(findings), "findings": findings})
    else:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, show_header=False, padding=(0, 1))
        for finding in findings:
            mark, style = MARKS[finding.status]
            mend = Text(f"\n→ {finding.mend}", "cyan") if finding.mend else Text()
            table.add_row(Text(mark, style), finding.check, Text.assemble(finding.detail, mend))
        console().print(table)
    if not healthy(findings):
        raise typer.Exit(1)
