"""`homing eval`: measure retrieval on questions whose answers are known, as tables, bars and lines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.calls import Answer, answers, mode_of, required
from homing.cli.devices import evaluate_homes
from homing.cli.language import text
from homing.cli.output import console, progress, say
from homing.errors import InvalidArgument

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from homing.app import Homing
    from homing.embedders.provider import EmbeddingProvider
    from homing.evaluation.result import Evaluation, Row
    from homing.evaluation.run import Configuration, Progress
    from homing.operations import Call

DEVICES = "devices"
WIDTH = 24
EIGHTHS = " ▏▎▍▌▋▊▉█"
STEPS = "▁▂▃▄▅▆▇█"
COLOURS = {"all": "bold", "zh": "red", "en": "blue", "mixed": "magenta"}


@answers("homing.evaluation.result:Evaluation", "homing.devices.evaluation:Evaluation[]")
def evaluate(
    call: Call,
    sets: Annotated[
        list[Path],
        typer.Argument(help="JSONL files, folders with corpus, queries and qrels, or `devices` and folders of homes."),
    ],
    model: Annotated[
        list[str] | None, typer.Option(help="A model to compare; may be repeated. Without it, the one in use.")
    ] = None,
    weights: Annotated[
        list[str] | None, typer.Option(help="Weights vector:keyword of RRF to compare, e.g. 0.7:0.3; may be repeated.")
    ] = None,
    k: Annotated[list[int] | None, typer.Option(help="A k of RRF to compare; may be repeated.")] = None,
    mode: Annotated[list[str] | None, typer.Option(help="Only semantic, keyword or hybrid; may be repeated.")] = None,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Compare all weights, from vectors to keywords alone.")
    ] = False,
    min_score: Annotated[float | None, typer.Option(help="Leave out semantic matches that score lower.")] = None,
    threshold: Annotated[float, typer.Option(help="A best hit that scores lower counts as no answer.")] = 0.5,
    floor: Annotated[
        list[str] | None, typer.Option(help="Fail below this value, e.g. recall_1=0.4 or zh:mrr=0.5; may be repeated.")
    ] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Keep the result in the data folder; the web page shows it.")
    ] = False,
) -> Answer:
    """Measure how well the right documents are found.

    Asks the questions of golden sets with the same search that people use, and reports recall@1/5/10, nDCG@10, MRR,
    abstention and latency for each language. Models, weights and k are compared side by side; weights and k belong to
    RRF (reciprocal rank fusion). The exit code is 1 if the best result of a set stays below a floor.

    `homing eval devices HOME…` asks the sentences of homes (devices.jsonl, areas.jsonl, eval.jsonl) and reports how
    often exactly the right devices were chosen, a wrong one was chosen, or the sentence was refused.
    """
    if str(sets[0]) == DEVICES:
        return evaluate_homes(sets[1:])
    from homing.evaluation.compare import Demand, compare
    from homing.evaluation.golden import read_golden
    from homing.evaluation.result import save_result

    app = call.app
    demands = [Demand.parse(one) for one in floor or []]
    compared = [read_golden(path) for path in sets]
    with ExitStack() as shown:

        def announce(label: str) -> Progress:
            shown.close()
            doing, _, name = label.partition(" ")
            return shown.enter_context(progress("{doing} {name}", doing=text(doing), name=name))

        configurations = _configurations(app, weights or [], k or [], mode or [], min_score, all_weights=sweep)
        result = compare(
            compared, _models(app, model or []), configurations, threshold=threshold, demands=demands, announce=announce
        )
    kept = save_result(app.settings.data, result) if save else None

    def show() -> None:
        _show(result, console())
        if kept is not None:
            say("saved as {name}", name=kept)

    return Answer(result, show, exit_code=0 if result.passed else 1)


def _models(app: Homing, names: list[str]) -> list[EmbeddingProvider]:
    if names:
        return [app.models.adapter(app.models.find(name).model) for name in dict.fromkeys(names)]
    return [required(app.embedder)]


def _configurations(
    app: Homing, weights: list[str], ks: list[int], modes: list[str], min_score: float | None, *, all_weights: bool
) -> list[Configuration]:
    from homing.evaluation.run import Configuration
    from homing.evaluation.run import sweep as every_weight

    for mode in modes:
        mode_of(mode)
    settings = app.settings.search
    # Weights and a k are those of the fusion by rank: who names some compares that.
    fusion = "rrf" if weights or ks or all_weights else settings.fusion
    pairs = [_weights(one) for one in weights] or [(settings.vector_weight, settings.keyword_weight)]
    chosen: list[Configuration] = []
    for k in ks or [settings.rrf_k]:
        if all_weights:
            chosen += every_weight(rrf_k=k, min_score=min_score)
        else:
            chosen += [Configuration(1, 0, k, min_score), Configuration(0, 1, k, min_score)]
            chosen += [Configuration(vector, keyword, k, min_score, fusion) for vector, keyword in pairs]
    # One leg alone is the same with every k.
    named = {one.name: one for one in chosen if not modes or one.mode in modes}
    if not named:
        left = ", ".join(modes)
        raise InvalidArgument(text("these weights leave nothing to compare in the mode {modes}", modes=left))
    return list(named.values())


def _weights(given: str) -> tuple[float, float]:
    try:
        vector, keyword = given.split(":")
        return float(vector), float(keyword)
    except ValueError:
        said = text("weights are written vector:keyword, e.g. 0.7:0.3; got {given!r}", given=given)
        raise InvalidArgument(said) from None


def _show(result: Evaluation, out: Console) -> None:
    """Print everything that a person wants to see of a result."""
    from rich.text import Text

    for one in result.sets:
        spoken = ", ".join(f"{count} {language}" for language, count in sorted(one.languages.items()))
        message = text("{one.documents:#document}, {one.questions:#question} ({spoken})", one=one, spoken=spoken)
        if one.unanswerable:
            message += text(", {count} of them without an answer", count=one.unanswerable)
        out.print(Text.assemble((one.name, "bold"), f"  {message}"))
        if one.missing:
            out.print(Text(text("{count} relevant documents are not in the corpus", count=one.missing), "yellow"))
        rows = [row for row in result.rows if row.set == one.name]
        out.print(_figures(rows, result, wide=out.width >= 100))
        for model in result.models:
            swept = [row for row in rows if row.model == model]
            if len({row.vector_weight for row in swept}) > 4:
                out.print(_over_weights(swept, model))
        _print_abstention(result, one.name)
        _print_latency(result, one.name, out)
        out.print()
    for best in result.best:
        named = f" · {best.model}" if len(result.models) > 1 else ""
        out.print(
            Text.assemble(
                (text("best of {set}", set=best.set), "bold"),
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
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1))
    if len(result.models) > 1:
        table.add_column(text("model"), no_wrap=True)
    for heading in (text("fusion"), text("language")):
        table.add_column(heading, no_wrap=True)
    for heading in (text("questions"), "R@1", "R@5", "R@10", "nDCG", "MRR"):
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
    from rich.text import Text

    title = text("nDCG@10 from keywords alone (left) to vectors alone (right), {model}", model=model)
    chart = Text(f"{title}\n", "dim")
    for language in dict.fromkeys(row.language for row in rows if row.kept is not None):
        swept = sorted((row for row in rows if row.language == language), key=lambda row: row.vector_weight)
        best = max(swept, key=lambda row: row.ndcg_10)
        chart.append(f"{language:>6} ", COLOURS[language])
        chart.append(line([row.ndcg_10 for row in swept]), COLOURS[language])
        said = text("best {one.ndcg_10:.3f} at {one.vector_weight:g}/{one.keyword_weight:g}", one=best)
        chart.append(f"  {said}\n")
    return chart


def _print_abstention(result: Evaluation, name: str) -> None:
    for model in result.models:
        swept = [one for one in result.thresholds if (one.set, one.model) == (name, model)]
        if not swept:
            continue
        best = max(swept, key=lambda one: (one.abstained + one.kept, -abs(one.threshold - result.threshold)))
        at = min(swept, key=lambda one: abs(one.threshold - result.threshold))
        say(
            "abstaining below {at.threshold:g}: silent on {at.abstained:.0%} of the questions without an answer, "
            "answers {at.kept:.0%} of the others; best at {best.threshold:g} ({best.abstained:.0%}, {best.kept:.0%})",
            at=at,
            best=best,
        )


def _print_latency(result: Evaluation, name: str, out: Console) -> None:
    from rich.text import Text

    for model in result.models:
        times = [one for one in result.latency if (one.set, one.model) == (name, model)]
        message = ", ".join(f"{text(one.mode)} {one.p50_ms:.1f} (p95 {one.p95_ms:.1f})" for one in times)
        if message:
            out.print(Text(text("search latency in ms with {model}: {times}", model=model, times=message), "dim"))
