"""`homing eval`: measure retrieval on questions whose answers are known."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.options import Json
from homing.cli.output import console, print_json, progress
from homing.errors import InvalidArgument, ModelNotReady

if TYPE_CHECKING:
    from homing.evaluation.run import Configuration, Scores

DEVICES = "devices"
FIGURES = ("recall_1", "recall_5", "recall_10", "ndcg_10", "mrr")


def evaluate(
    sets: Annotated[
        list[Path], typer.Argument(help="JSONL files, folders with corpus, queries and qrels, or `devices` and homes.")
    ],
    weights: Annotated[list[str] | None, typer.Option(help="Vector:keyword weights to compare, e.g. 0.7:0.3.")] = None,
    sweep: Annotated[bool, typer.Option("--sweep", help="Compare all weights from vector to keyword.")] = False,
    k: Annotated[int, typer.Option(help="The k of the fusion.")] = 60,
    min_score: Annotated[float | None, typer.Option(help="Leave out semantic matches scored below this.")] = None,
    floor: Annotated[list[str] | None, typer.Option(help="Fail below this, e.g. recall_1=0.4.")] = None,
    json: Json = False,
) -> None:
    """Measure recall@1/5/10, nDCG@10 and MRR of both legs and their fusion, per language; exit code 1 below a floor.

    `homing eval devices HOME…` asks the sentences of a home (devices.jsonl, areas.jsonl, eval.jsonl), and counts
    exact sets of devices, wrong devices and refusals.
    """
    if str(sets[0]) == DEVICES:
        _evaluate_devices(sets[1:], json=json)
        return
    from homing.config import load
    from homing.evaluation.golden import read_golden
    from homing.evaluation.run import ask, index, latency, score
    from homing.resolve import resolve_embedder
    from homing.stores.registry import open_store

    floors = dict(_floor(one) for one in floor or [])
    embedder = resolve_embedder(load().settings)
    if embedder is None:
        raise ModelNotReady("no embedding model is configured; set embedding.provider to `bundled`")
    rows: list[Scores] = []
    timings: dict[str, dict[str, float]] = {}
    for path in sets:
        golden = read_golden(path)
        with tempfile.TemporaryDirectory(prefix="homing-eval-") as folder:
            store = open_store(f"sqlite:///{folder}/eval.db")
            with progress(f"Indexing {golden.name}", quiet=json) as step:
                index(golden, store, embedder, step)
            with progress(f"Asking {golden.name}", quiet=json) as step:
                answers = ask(golden, store, embedder, step)
            timings[golden.name] = latency(golden, store, embedder)
            store.close()
        rows += score(golden.name, answers, _configurations(weights or [], k, min_score, all_weights=sweep))
    if json:
        print_json({"model": embedder.id, "rows": [asdict(row) for row in rows], "latency": timings})
    else:
        _show(embedder.id, rows, timings)
    if not all(_reaches(rows, name, figure, at) for name in timings for figure, at in floors.items()):
        raise typer.Exit(1)


def _evaluate_devices(homes: list[Path], *, json: bool) -> None:
    from homing.devices.evaluation import evaluate as evaluate_home

    if not homes:
        raise InvalidArgument("name the folders of the homes, e.g. homing eval devices homes/villa")
    results = [evaluate_home(home) for home in homes]
    if json:
        print_json(results)
        return
    from rich.table import Table

    table = Table("home", "sentences", "exact", "wrong device", "refused", "direction", box=None)
    for one in results:
        shares = (one.exact, one.wrong, one.refused, one.direction)
        table.add_row(one.name, str(one.sentences), *(f"{share:.4f}" for share in shares))
    out = console()
    out.print(table)
    for one in results:
        for miss in one.misses:
            out.print(
                f"{one.name}: {miss.sentence} → {list(miss.found)}, meant {list(miss.expected)} {list(miss.hints)}"
            )


def _reaches(rows: list[Scores], name: str, figure: str, floor: float) -> bool:
    """Whether the best fusion of a set reaches a floor; the single legs are there to compare with."""
    fused = [
        row for row in rows if row.set == name and row.language == "all" and row.configuration.startswith("hybrid")
    ]
    return max((getattr(row, figure) for row in fused), default=0.0) >= floor


def _configurations(weights: list[str], k: int, min_score: float | None, *, all_weights: bool) -> list[Configuration]:
    from homing.evaluation.run import Configuration
    from homing.evaluation.run import sweep as every_weight

    if all_weights:
        return every_weight()
    pairs = [_weights(one) for one in weights] or [(0.7, 0.3)]
    chosen = [(1.0, 0.0), (0.0, 1.0), *pairs]
    return [Configuration(vector, keyword, k, min_score) for vector, keyword in chosen]


def _weights(text: str) -> tuple[float, float]:
    try:
        vector, keyword = text.split(":")
        return float(vector), float(keyword)
    except ValueError:
        raise InvalidArgument(f"weights are written vector:keyword, e.g. 0.7:0.3; got {text!r}") from None


def _floor(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        at = float(value)
    except ValueError:
        at = -1.0
    if name not in FIGURES or at < 0:
        raise InvalidArgument(f"a floor is FIGURE=NUMBER with a figure of {', '.join(FIGURES)}; got {text!r}")
    return name, at


def _show(model: str, rows: list[Scores], timings: dict[str, dict[str, float]]) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    table = Table(title=model, box=None, padding=(0, 1))
    for heading in ("set", "fusion", "language"):
        table.add_column(heading, no_wrap=True)
    for heading in ("asked", "R@1", "R@5", "R@10", "nDCG", "MRR"):
        table.add_column(heading, justify="right")
    if out.width > 110:
        table.add_column("R@1", no_wrap=True)
    for row in rows:
        figures = [f"{getattr(row, figure):.3f}" for figure in FIGURES]
        bar = [Text("█" * round(row.recall_1 * 20), "green")] if out.width > 110 else []
        table.add_row(row.set, row.configuration, row.language, str(row.questions), *figures, *bar)
    out.print(table)
    for name, times in timings.items():
        out.print(Text(f"{name}: " + ", ".join(f"{key} {value:.1f}" for key, value in times.items()), "dim"))
