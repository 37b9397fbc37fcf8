"""`homing eval`: measure retrieval on questions whose answers are known."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.opened import opened
from homing.cli.options import Data, Json
from homing.cli.output import console, print_json, progress
from homing.errors import InvalidArgument, ModelNotReady

if TYPE_CHECKING:
    from homing.app import Homing
    from homing.embedders.provider import EmbeddingProvider
    from homing.evaluation.run import Configuration, Progress

DEVICES = "devices"
MODES = ("semantic", "keyword", "hybrid")


def evaluate(
    sets: Annotated[
        list[Path], typer.Argument(help="JSONL files, folders with corpus, queries and qrels, or `devices` and homes.")
    ],
    model: Annotated[
        list[str] | None, typer.Option(help="A model to compare; may be repeated. The one in use.")
    ] = None,
    weights: Annotated[
        list[str] | None, typer.Option(help="Weights of a fusion by rank to compare, e.g. 0.7:0.3.")
    ] = None,
    k: Annotated[list[int] | None, typer.Option(help="A k of the fusion by rank to compare.")] = None,
    mode: Annotated[list[str] | None, typer.Option(help="Only semantic, keyword or hybrid; may be repeated.")] = None,
    sweep: Annotated[bool, typer.Option("--sweep", help="Compare all weights from vector to keyword.")] = False,
    min_score: Annotated[float | None, typer.Option(help="Leave out semantic matches scored below this.")] = None,
    threshold: Annotated[float, typer.Option(help="An answer whose best hit scores less counts as none.")] = 0.5,
    floor: Annotated[list[str] | None, typer.Option(help="Fail below this, e.g. recall_1=0.4, zh:mrr=0.5.")] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Keep the result in the data folder; the page draws it.")
    ] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Measure how well the right documents are found.

    Puts the questions to the search that people use, and counts recall@1/5/10, nDCG@10, MRR, abstention and latency,
    per language. Models, weights and k are compared side by side; weights and k are those of the fusion by rank. Exit
    code 1 where the best fusion of a set stays below a floor.

    `homing eval devices HOME…` asks the sentences of a home (devices.jsonl, areas.jsonl, eval.jsonl), and counts exact
    sets of devices, wrong devices and refusals.
    """
    if str(sets[0]) == DEVICES:
        _evaluate_devices(sets[1:], json=json)
        return
    from homing.evaluation.compare import Demand, compare
    from homing.evaluation.golden import read_golden
    from homing.evaluation.result import save_result

    demands = [Demand.parse(one) for one in floor or []]
    compared = [read_golden(path) for path in sets]
    with opened(data) as app, ExitStack() as shown:

        def announce(label: str) -> Progress:
            shown.close()
            return shown.enter_context(progress(label, quiet=json))

        configurations = _configurations(app, weights or [], k or [], mode or [], min_score, all_weights=sweep)
        result = compare(
            compared, _models(app, model or []), configurations, threshold=threshold, demands=demands, announce=announce
        )
        shown.close()
        kept = save_result(app.settings.data, result) if save else None
    if json:
        print_json(result.model_dump(mode="json"))
    else:
        from homing.cli.evaluation_chart import show

        show(result, console())
        if kept is not None:
            console().print(f"kept as {kept}", markup=False)
    if not result.passed:
        raise typer.Exit(1)


def _models(app: Homing, names: list[str]) -> list[EmbeddingProvider]:
    if names:
        return [app.models.adapter(app.models.find(name).model) for name in dict.fromkeys(names)]
    if app.embedder is None:
        raise ModelNotReady("no embedding model is configured; set embedding.provider to `bundled`")
    return [app.embedder]


def _configurations(
    app: Homing, weights: list[str], ks: list[int], modes: list[str], min_score: float | None, *, all_weights: bool
) -> list[Configuration]:
    from homing.evaluation.run import Configuration
    from homing.evaluation.run import sweep as every_weight

    for mode in modes:
        if mode not in MODES:
            raise InvalidArgument(f"no mode named {mode!r}; known: {', '.join(MODES)}")
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
        raise InvalidArgument(f"with these weights there is nothing in the mode {', '.join(modes)}")
    return list(named.values())


def _weights(text: str) -> tuple[float, float]:
    try:
        vector, keyword = text.split(":")
        return float(vector), float(keyword)
    except ValueError:
        raise InvalidArgument(f"weights are written vector:keyword, e.g. 0.7:0.3; got {text!r}") from None


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
