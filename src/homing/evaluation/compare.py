"""Golden sets, models and configurations side by side, as one result."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from homing.embedders.provider import EmbeddingProvider, Wrapper
from homing.engine.engine import Engine
from homing.errors import InvalidArgument
from homing.evaluation.golden import GoldenSet
from homing.evaluation.result import (
    FIGURES,
    Best,
    Evaluation,
    Figure,
    Floor,
    Language,
    Latency,
    Reliability,
    Row,
    SetSummary,
    Threshold,
)
from homing.evaluation.run import (
    MODES,
    THRESHOLD,
    Configuration,
    Progress,
    ask,
    index,
    latency,
    reliability,
    score,
    thresholds,
)
from homing.stores.registry import open_store

Announce = Callable[[str], Progress | None]
"""Called with what begins; returns whom to tell how far it is."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A floor: what the best fused configuration of every set must reach."""

    figure: Figure
    floor: float
    language: Language = "all"

    @classmethod
    def parse(cls, text: str) -> Demand:
        """`recall_1=0.4`, or `zh:recall_1=0.4` for the questions of one language. Raises InvalidArgument."""
        name, _, value = text.partition("=")
        language, _, figure = name.rpartition(":")
        try:
            floor = float(value)
        except ValueError:
            floor = -1.0
        if figure not in FIGURES or language not in ("", "zh", "en", "mixed") or floor < 0:
            raise InvalidArgument(
                f"a floor is FIGURE=NUMBER or LANGUAGE:FIGURE=NUMBER with a figure of {', '.join(FIGURES)} and a "
                f"language of zh, en, mixed; got {text!r}"
            )
        return cls(cast(Figure, figure), floor, cast(Language, language or "all"))

    def concerns(self, golden: GoldenSet) -> bool:
        """Whether a set has questions that the floor is about."""
        spoken = [one for one in golden.questions if self.language in ("all", one.language)]
        return any(bool(one.relevant) is (self.figure != "abstained") for one in spoken)


def compare(
    sets: Sequence[GoldenSet],
    models: Sequence[EmbeddingProvider],
    configurations: Sequence[Configuration],
    *,
    threshold: float = THRESHOLD,
    demands: Sequence[Demand] = (),
    announce: Announce | None = None,
) -> Evaluation:
    """Put the questions of every set to the search, with every model in every configuration, and score the answers."""
    from homing import __version__

    if len({golden.name for golden in sets}) < len(sets):
        raise InvalidArgument("two golden sets have one name; rename a file or folder, so that they can be told apart")
    concerned = [(golden, demand) for demand in demands for golden in sets if demand.concerns(golden)]
    for demand in demands:
        if all(demand is not other for _, other in concerned):
            raise InvalidArgument(f"the floor {demand.language}:{demand.figure} concerns no question of these sets")
    rows: list[Row] = []
    timings: list[Latency] = []
    borders: list[Threshold] = []
    dots: list[Reliability] = []
    for golden in sets:
        for model in models:
            measured = _measure(golden, model, configurations, threshold, announce or _nobody)
            rows += measured[0]
            timings += measured[1]
            borders += measured[2]
            dots += measured[3]
    now = time.gmtime()
    return Evaluation(
        id=f"{time.strftime('%Y%m%dT%H%M%SZ', now)}-{secrets.token_hex(3)}",
        created=time.strftime("%Y-%m-%dT%H:%M:%SZ", now),
        version=__version__,
        threshold=threshold,
        sets=tuple(map(summary, sets)),
        models=tuple(model.id for model in models),
        rows=tuple(rows),
        latency=tuple(timings),
        thresholds=tuple(borders),
        best=tuple(_best(golden.name, rows) for golden in sets),
        floors=tuple(_floor(golden, demand, rows) for golden, demand in concerned),
        reliability=tuple(dots),
    )


def summary(golden: GoldenSet) -> SetSummary:
    """What a result says about a set."""
    languages: dict[Language, int] = {}
    for question in golden.questions:
        languages[question.language] = languages.get(question.language, 0) + 1
    relevant = {one for question in golden.questions for one in question.relevant}
    return SetSummary(
        name=golden.name,
        documents=len(golden.corpus),
        questions=len(golden.questions),
        unanswerable=sum(not question.relevant for question in golden.questions),
        missing=len(relevant - set(golden.corpus)),
        languages=languages,
    )


def _measure(
    golden: GoldenSet,
    model: EmbeddingProvider,
    configurations: Sequence[Configuration],
    threshold: float,
    announce: Announce,
) -> tuple[list[Row], list[Latency], list[Threshold], list[Reliability]]:
    with (
        tempfile.TemporaryDirectory(prefix="homing-eval-") as folder,
        closing(open_store(f"sqlite:///{Path(folder) / 'eval.db'}")) as store,
        # Not another one, whatever becomes the default meanwhile.
        closing(Engine(store, Wrapper(model))) as engine,
    ):
        index(golden, engine, announce(f"Indexing {golden.name}"))
        answers = ask(golden, engine, configurations, announce(f"Asking {golden.name}"))
        timings = [latency(golden, engine, mode) for mode in MODES]
    rows = score(golden.name, answers, configurations, model=model.id, threshold=threshold)
    timed = [one for one in timings if one is not None]
    return (
        rows,
        timed,
        thresholds(golden.name, model.id, answers),
        reliability(golden.name, model.id, answers),
    )


def _nobody(_: str) -> None:
    return None


def _best(name: str, rows: Sequence[Row]) -> Best:
    row = max((row for row in rows if row.set == name and row.language == "all"), key=lambda row: row.ndcg_10)
    return Best(set=name, model=row.model, configuration=row.configuration, ndcg_10=row.ndcg_10, recall_1=row.recall_1)


def _floor(golden: GoldenSet, demand: Demand, rows: Sequence[Row]) -> Floor:
    """The best fused configuration counts; the single legs are there to compare with, unless there is nothing else."""
    # The questions of a set with a single language are all of them.
    single = len({question.language for question in golden.questions}) == 1
    language = "all" if single else demand.language
    here = [row for row in rows if row.set == golden.name and row.language == language]
    fused = [row for row in here if row.mode == "hybrid"] or here
    value = max(getattr(row, demand.figure) for row in fused)
    return Floor(
        set=golden.name,
        language=demand.language,
        figure=demand.figure,
        floor=demand.floor,
        value=value,
        reached=value >= demand.floor,
    )
