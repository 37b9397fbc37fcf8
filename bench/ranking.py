"""Which formula turns the measures of both legs into the best order, on development sets.

    python bench/ranking.py DEV_FOLDER [--cache FOLDER] [--top 12]

Each set is embedded once and remembered in the cache (outside of the repository); cosine and BM25 are the product's
own. Every candidate is put into `results/ranking.json` with its recall@1 on every set. `half` is how well a formula
does that was the best on one half of the questions, on the other half: what choosing among so many is worth.

With `opencc` installed the Chinese passages are asked in traditional characters as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from homing.embedders.local import LocalProvider
from homing.evaluation.golden import GoldenSet
from homing.models.fitting import Measures, measured_texts
from measures import label, measure, read_sets, remembered
from report import machine, show, write

RESULTS = Path(__file__).parent / "results" / "ranking.json"
DEPTH = 30
"""Matches that each leg brings to a search with ten hits."""
CHOSEN = "(1-cos) exp(-1 bm25/mass^0.5 idf1^0.5)"
"""What the product does."""
Formula = Callable[[Measures], np.ndarray]
"""The higher, the better; of every question and document."""


def rrf(of: Measures, weights: tuple[float, float] = (0.7, 0.3), k: int = 60) -> np.ndarray:
    """Reciprocal rank fusion of the two lists, as deep as a search asks for."""
    fused = np.zeros(of.cosine.shape)
    for values, weight in zip((of.cosine, of.bm25), weights, strict=True):
        order = np.argsort(-values, axis=1, kind="stable")[:, :DEPTH]
        ranks = weight / (k + 1 + np.arange(order.shape[1]))
        found = np.take_along_axis(values, order, axis=1) != 0
        np.put_along_axis(fused, order, np.take_along_axis(fused, order, axis=1) + ranks * found, axis=1)
    return fused


def evidence(of: Measures, share: float) -> np.ndarray:
    """BM25 over `mass` to the power of `share` and the idf of a word found once to the rest."""
    return of.bm25 / (np.maximum(of.mass, 1e-9)[:, None] ** share * max(of.rarest, 1e-9) ** (1 - share))


def nearer(lift: float, share: float, power: float = 1.0) -> Formula:
    """The cosine's distance, shortened by evidence."""
    return lambda of: -(1 - of.cosine) * np.exp(-lift * evidence(of, share) ** power)


def summed(lift: float, share: float) -> Formula:
    """The cosine, and evidence on top."""
    return lambda of: of.cosine + lift * evidence(of, share)


def candidates() -> dict[str, Formula]:
    """Everything that was tried, by name."""
    found: dict[str, Formula] = {
        "vectors": lambda of: of.cosine,
        "words": lambda of: of.bm25 + 1e-6 * of.cosine,
        "rrf .7/.3": rrf,
        "rrf .5/.5": lambda of: rrf(of, (0.5, 0.5)),
        "before: exp(-.5 bm25/idf1)": nearer(0.5, 0.0),
    }
    for share in (0.0, 0.25, 0.5, 0.6, 0.75, 1.0):
        for lift in (0.25, 0.4, 0.5, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0):
            found[f"(1-cos) exp(-{lift:g} bm25/mass^{share:g} idf1^{1 - share:g})"] = nearer(lift, share)
    for share in (0.5, 0.75):
        for power in (0.75, 1.5, 2.0):
            for lift in (0.4, 0.8, 1.2, 2.0):
                found[f"(1-cos) exp(-{lift:g} (bm25/mass^{share:g} idf1^{1 - share:g})^{power:g})"] = nearer(
                    lift, share, power
                )
    for share in (0.0, 0.5, 0.75, 1.0):
        for lift in (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2):
            found[f"cos + {lift:g} bm25/mass^{share:g} idf1^{1 - share:g}"] = summed(lift, share)
    return found


def first_right(of: Measures, score: np.ndarray) -> np.ndarray:
    """Of each answerable question, whether the first document is a relevant one; ties by position."""
    first = score.argmax(axis=1)
    return of.relevant[np.arange(len(first)), first][of.relevant.any(axis=1)].astype(float)


def halves(right: Mapping[str, Mapping[str, np.ndarray]], names: list[str]) -> tuple[str, float]:
    """The mean over the sets of what was best on the even questions, on the odd ones; and its name."""

    def mean(name: str, half: int) -> float:
        return float(np.mean([one[half::2].mean() for one in right[name].values()]))

    best = max(names, key=lambda name: mean(name, 0))
    return best, mean(best, 1)


def long_and_short(of: Measures, golden: GoldenSet, score: np.ndarray) -> tuple[float, float]:
    """Recall@1 of the longer and of the shorter half of the questions."""
    answerable = np.flatnonzero(of.relevant.any(axis=1))
    lengths = np.array([len(golden.questions[at].text) for at in answerable])
    right, longer = first_right(of, score), lengths > np.median(lengths)
    return float(right[longer].mean()), float(right[~longer].mean())


def promise(
    table: Mapping[str, Mapping[str, float]], lengths: Mapping[str, tuple[float, float]]
) -> dict[str, dict[str, float]]:
    """Of each set and of their mean, how much better the product's formula is than each leg and than RRF, and how it
    does on the longer and on the shorter half of the questions."""
    found = {}
    for one, value in table[CHOSEN].items():
        over = {f"over {leg}": value - table[leg][one] for leg in ("vectors", "words", "rrf .7/.3")}
        long, short = lengths.get(one, np.mean(list(lengths.values()), axis=0))
        row = {"recall@1": value} | over | {"longer half": long, "shorter half": short}
        found[one] = {name: round(float(number), 4) for name, number in row.items()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dev", type=Path)
    parser.add_argument("--cache", type=Path, default=Path("/tmp/homing-measures"))
    parser.add_argument("--top", type=int, default=12)
    args = parser.parse_args()
    sets = read_sets(args.dev)
    embedder, measured = remembered(LocalProvider(), args.cache), {}
    for name, golden in sets.items():
        with measured_texts(golden.corpus, embedder) as texts:
            measured[name] = measure(texts, golden.questions)
    formulas = candidates()
    right = {
        name: {which: first_right(of, formula(of)) for which, of in measured.items()}
        for name, formula in formulas.items()
    }
    table = {name: {label(which): float(one.mean()) for which, one in by_set.items()} for name, by_set in right.items()}
    for row in table.values():
        row["mean"] = float(np.mean(list(row.values())))
    order = sorted(table, key=lambda name: -table[name]["mean"])
    shown = [*list(formulas)[:5], *(name for name in order if name not in list(formulas)[:5])][: args.top + 5]
    columns = list(next(iter(table.values())))
    show("recall@1", [{"formula": name} | {one: f"{table[name][one]:.3f}" for one in columns} for name in shown])
    names = [name for name in formulas if not name.startswith(("vectors", "words", "rrf"))]
    best, other = halves(right, names)
    print(f"best on one half of the questions: {best}; on the other half {other:.3f}")
    lengths = {label(one): long_and_short(of, sets[one], formulas[CHOSEN](of)) for one, of in measured.items()}
    held = promise(table, lengths)
    show("what the product promises", [{"set": name} | row for name, row in held.items()])
    rounded = {name: {one: round(value, 4) for one, value in table[name].items()} for name in order}
    write(
        RESULTS,
        {
            "machine": machine(),
            "model": LocalProvider().id,
            "promise": held,
            "candidates": rounded,
            "half": {"best": best, "other half": round(other, 4)},
        },
    )


if __name__ == "__main__":
    main()
