"""An evaluation for a terminal: tables, bars, and a line over the weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from homing.evaluation.result import Evaluation, Row

WIDTH = 24
EIGHTHS = " ▏▎▍▌▋▊▉█"
STEPS = "▁▂▃▄▅▆▇█"
COLOURS = {"all": "bold", "zh": "red", "en": "blue", "mixed": "magenta"}


def show(result: Evaluation, out: Console) -> None:
    """Print everything that a person wants to see of a result."""
    for one in result.sets:
        languages = ", ".join(f"{count} {language}" for language, count in sorted(one.languages.items()))
        told = f"{one.documents} documents, {one.questions} questions ({languages})"
        silent = f", {one.unanswerable} of them without an answer" if one.unanswerable else ""
        out.print(Text.assemble((one.name, "bold"), f"  {told}{silent}"))
        if one.missing:
            out.print(Text(f"{one.missing} relevant documents are not in the corpus", "yellow"))
        rows = [row for row in result.rows if row.set == one.name]
        out.print(_figures(rows, result, wide=out.width >= 100))
        for model in result.models:
            swept = [row for row in rows if row.model == model]
            if len({row.vector_weight for row in swept}) > 4:
                out.print(_over_weights(swept, model))
        _print_abstention(result, one.name, out)
        _print_latency(result, one.name, out)
        out.print()
    for best in result.best:
        named = f" with {best.model}" if len(result.models) > 1 else ""
        out.print(
            Text.assemble(
                "best of ",
                (best.set, "bold"),
                f": {best.configuration}{named}, ",
                (f"nDCG@10 {best.ndcg_10:.3f}", "bold green"),
            )
        )
    for floor in result.floors:
        mark, colour = ("✓", "green") if floor.reached else ("✗", "bold red")
        sign = "≥" if floor.reached else "<"
        where = "" if floor.language == "all" else f" ({floor.language})"
        out.print(Text(f"{mark} {floor.set}: {floor.figure}{where} {floor.value:.3f} {sign} {floor.floor:g}", colour))


def bar(share: float, width: int = WIDTH) -> str:
    """A share of 1 as a bar that is `width` wide, in eighths of a character."""
    filled = max(0.0, min(1.0, share)) * width
    whole = int(filled)
    part = EIGHTHS[int((filled - whole) * 8)]
    return ("█" * whole + part).rstrip()


def line(values: Sequence[float]) -> str:
    """Values as columns of different height, from the lowest of them to the highest."""
    low, high = min(values), max(values)
    span = high - low
    return "".join(STEPS[round((value - low) / span * 7) if span else 3] for value in values)


def _figures(rows: Sequence[Row], result: Evaluation, *, wide: bool) -> Table:
    table = Table(box=None, padding=(0, 1))
    if len(result.models) > 1:
        table.add_column("model", no_wrap=True)
    for heading in ("fusion", "language"):
        table.add_column(heading, no_wrap=True)
    for heading in ("asked", "R@1", "R@5", "R@10", "nDCG", "MRR"):
        table.add_column(heading, justify="right", no_wrap=True)
    if wide:
        table.add_column("nDCG@10", no_wrap=True, min_width=WIDTH)
    highest = max((row.ndcg_10 for row in rows if row.language == "all"), default=0.0)
    for row in rows:
        first = row.language == "all"
        style = "bold" if first and row.ndcg_10 == highest else "" if first else "dim"
        figures = (row.recall_1, row.recall_5, row.recall_10, row.ndcg_10, row.mrr)
        cells = [
            row.configuration if first else "",
            row.language,
            str(row.questions),
            # Where every question is one that nothing answers, there is nothing to find.
            *("–" if row.kept is None else f"{one:.3f}" for one in figures),
        ]
        if len(result.models) > 1:
            cells.insert(0, row.model if first else "")
        shown = [Text(cell, style) for cell in cells]
        table.add_row(*shown, *([Text(bar(row.ndcg_10), "green" if first else COLOURS[row.language])] if wide else []))
    return table


def _over_weights(rows: Sequence[Row], model: str) -> Text:
    """nDCG@10 from keywords alone to vectors alone, one line for each language."""
    told = Text(f"nDCG@10 from keywords alone (left) to vectors alone (right), {model}\n", "dim")
    for language in dict.fromkeys(row.language for row in rows if row.kept is not None):
        swept = sorted((row for row in rows if row.language == language), key=lambda row: row.vector_weight)
        best = max(swept, key=lambda row: row.ndcg_10)
        told.append(f"{language:>6} ", COLOURS[language])
        told.append(line([row.ndcg_10 for row in swept]), COLOURS[language])
        told.append(f"  best {best.ndcg_10:.3f} at {best.vector_weight:g}/{best.keyword_weight:g}\n")
    return told


def _print_abstention(result: Evaluation, name: str, out: Console) -> None:
    for model in result.models:
        swept = [one for one in result.thresholds if (one.set, one.model) == (name, model)]
        if not swept:
            continue
        best = max(swept, key=lambda one: (one.abstained + one.kept, -abs(one.threshold - result.threshold)))
        at = min(swept, key=lambda one: abs(one.threshold - result.threshold))
        out.print(
            f"abstaining below {at.threshold:g}: silent on {at.abstained:.0%} of what nothing answers, answers "
            f"{at.kept:.0%} of the rest; best at {best.threshold:g} ({best.abstained:.0%}, {best.kept:.0%})"
        )


def _print_latency(result: Evaluation, name: str, out: Console) -> None:
    for model in result.models:
        times = [one for one in result.latency if (one.set, one.model) == (name, model)]
        told = ", ".join(f"{one.mode} {one.p50_ms:.1f} (p95 {one.p95_ms:.1f})" for one in times)
        if told:
            out.print(Text(f"milliseconds of a search with {model}: {told}", "dim"))
