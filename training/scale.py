"""The scale of a model: its cosines for right and for wrong answers on the development sets, and the border between.

    python scale.py MODEL_FOLDER --dev DEV_FOLDER [--out log/scale.json]

Prints how the cosines lie in each set, and what scale other choices of wrong answers would have given.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluate import RetrievalSet, read_set
from homing.embedders.local import LocalProvider
from homing.models.calibrate import fit_scale
from homing.vectors import Scale

# Not among them: the set that shares its source with training data of the first generation.
SCALE_SETS = (
    "passages_q-zh_d-zh", "passages_q-zh_d-en", "passages_q-en_d-zh", "passages_q-en_d-en",
    "agents_zh", "agents_en", "tools_bfcl",
)  # fmt: skip
PAIRS_A_SET = 300
"""Each set counts the same, so that no one kind of text decides the border."""
NEAR = 50
"""Which of the wrong documents, the nearest first, is the near one. The first few are often right ones that nobody
marked; the tenth would put many right answers under 0.55 and 0.7, where callers cut."""
OTHERS = (None, 100, 50, 30, 10)
"""What else could have been the near one; None is none."""


@dataclass(frozen=True)
class Cosines:
    """Of questions with a document that answers them, with a random one that does not, and with the nearest such."""

    related: np.ndarray
    random: np.ndarray
    wrong: np.ndarray

    @property
    def near(self) -> np.ndarray:
        return self.wrong[:, NEAR - 1]


def cosines_of(provider: LocalProvider, data: RetrievalSet, *, seed: int = 0) -> Cosines:
    draw = np.random.default_rng(seed)
    chosen = draw.permutation(len(data.queries))[:PAIRS_A_SET]
    cosines = provider.embed([data.queries[query] for query in chosen]) @ provider.embed(data.documents).T
    related, chance, wrong = [], [], []
    for row, query in zip(cosines, chosen, strict=True):
        others = np.delete(row, list(data.relevant[query]))
        related.append(row[min(data.relevant[query])])
        chance.append(draw.choice(others))
        wrong.append(np.sort(others)[::-1][: max(one for one in OTHERS if one)])
    return Cosines(np.array(related), np.array(chance), np.array(wrong))


def together(sets: Mapping[str, Cosines]) -> Cosines:
    return Cosines(
        *(np.concatenate([getattr(one, kind) for one in sets.values()]) for kind in ("related", "random", "wrong"))
    )


def fitted(sets: Mapping[str, Cosines], near: int | None = NEAR) -> Scale:
    """The scale between right answers, and random and near wrong ones."""
    cosines = together(sets)
    wrong = [cosines.random] if near is None else [cosines.random, cosines.wrong[:, near - 1]]
    return fit_scale(cosines.related, np.concatenate(wrong))


def described(cosines: Cosines, scale: Scale) -> dict[str, object]:
    kinds = {"related": cosines.related, "random": cosines.random, "near": cosines.near}
    told: dict[str, object] = {
        kind: [round(float(one), 2) for one in np.percentile(values, [5, 50, 95])] for kind, values in kinds.items()
    }
    told["related over"] = round(float((cosines.related >= scale.border).mean()), 3)
    told |= {f"{kind} under": round(float((kinds[kind] < scale.border).mean()), 3) for kind in ("random", "near")}
    return told


def choices(sets: Mapping[str, Cosines]) -> list[dict[str, object]]:
    """For each choice of the near one: the scale, how many right answers stay over 0.7, what wrong ones score."""
    cosines = together(sets)
    rows = []
    for near in OTHERS:
        scale = fitted(sets, near)
        median = {nth: scale.score(float(np.median(cosines.wrong[:, nth - 1]))) for nth in (1, 10)}
        kept = np.mean([scale.score(float(one)) >= 0.7 for one in cosines.related])
        rows.append({
            "near": near, "border": scale.border, "steepness": scale.steepness,
            "related over .7": round(float(kept), 3),
            "nearest wrong": round(median[1], 2), "tenth wrong": round(median[10], 2),
        })  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    provider = LocalProvider(args.model)
    sets = {name: cosines_of(provider, read_set(args.dev / name)) for name in SCALE_SETS}
    scale = fitted(sets)
    report: dict[str, object] = {
        "scale": {"border": scale.border, "steepness": scale.steepness},
        "sets": {name: described(one, scale) for name, one in [*sets.items(), ("all", together(sets))]},
        "choices": choices(sets),
    }
    print(json.dumps(report, indent=1))
    if args.out:
        args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
