"""What else an answer could be told by: every candidate for `engine.ranking.Standing`, each set read by the others.

Called by `calibration.py --write`, which logs what this finds. A candidate is a handful of numbers that a search has at
hand, weighed by a logistic regression. It is cut where 92 % of the right answers stay, so that candidates differ in
what they answer beside those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from homing.engine.ranking import FIELD, NEAREST, SAME
from homing.models.fitting import PULL, Questions, logistic
from measures import simplified

KEPT = 0.92
THINNED = 5
"""Of questions to small collections, which are the same ones once more, every so-manieth is taken."""
BEFORE = ("near", "lead", "first over 9th", "short", "small")
CHOSEN = ("near", "lead", f"nearest over {FIELD}th", f"nearest over {FIELD}th, wordless", "short", "small")
FURTHER = (
    "cosine", "nearest", "9th", "20th", "30th", "deviations", "lead over 5th", "lead over 10th", "lead over 30th",
    "wordless", "evidence", "coverage", "most coverage", "first by meaning", "first by words", "words over 9th", "long",
)  # fmt: skip
"""Each is tried on top of what was there before, and on top of what was chosen."""
Table = dict[str, np.ndarray]


def features(of: Questions, unrelated: Mapping[int, float]) -> Table:
    """All that is tried, of every question; `unrelated` are cosines for what is not there among few texts."""
    measures = of.measures
    gone = measures.relevant & of.removed
    cosine, bm25 = np.where(gone, -1.0, measures.cosine), np.where(gone, 0.0, measures.bm25)
    distance = np.where(gone, 2.0, measures.distance)
    rows, texts = np.arange(len(cosine)), cosine.shape[1]
    first = distance.argmin(axis=1)
    mass = np.maximum(measures.mass, 1e-9)
    worth = np.sqrt(mass * max(measures.rarest, 1e-9))

    def placed(values: np.ndarray, place: int, missing: float) -> np.ndarray:
        if place > texts:
            return np.full(len(values), missing)
        return -np.partition(-values, place - 1, axis=1)[:, place - 1]

    near = np.maximum(-placed(-distance, 1, 0.0), SAME)
    at = {place: placed(cosine, place, unrelated[place]) for place in unrelated}

    def lead(place: int) -> np.ndarray:
        other = -placed(-distance, place, unrelated[9] - 1)
        return np.sqrt(np.log(np.maximum(other, near) / near))

    here, words = cosine[rows, first], bm25[rows, first]
    others = np.sort(cosine, axis=1)[:, -30:]
    length = np.log(np.maximum(measures.mass, 0.01 * measures.rarest) / measures.rarest)
    found = {
        "near": np.minimum(-np.log(near), NEAREST),
        "lead": lead(2),
        "short": np.minimum(0, length),
        "long": np.maximum(0, length),
        "small": np.full(len(rows), measures.smallness),
        "cosine": here,
        "nearest": cosine.max(axis=1),
        "deviations": (here - others.mean(axis=1)) / (others.std(axis=1) + 0.01),
        "wordless": (words == 0).astype(float),
        "evidence": words / worth,
        "coverage": words / mass,
        "most coverage": bm25.max(axis=1) / mass,
        "first by meaning": (cosine.argmax(axis=1) == first).astype(float),
        "first by words": ((bm25.argmax(axis=1) == first) & (words > 0)).astype(float),
        "words over 9th": (words - placed(bm25, 9, 0.0)) / worth,
    }
    found |= {f"{place}th": value for place, value in at.items()}
    found |= {f"lead over {place}th": lead(place) for place in (5, 10, 30)}
    for place, value in at.items():
        for name, best in (("first", here), ("nearest", found["nearest"])):
            found[f"{name} over {place}th"] = best - value
            found[f"{name} over {place}th, wordless"] = (best - value) * found["wordless"]
    return found


@dataclass(frozen=True)
class _Rows:
    table: Table
    right: np.ndarray
    weights: np.ndarray
    sets: np.ndarray
    kinds: np.ndarray
    silent: np.ndarray


def _gathered(asked: Mapping[str, Mapping[str, Questions]], silent: Mapping[str, Mapping[str, np.ndarray]]) -> _Rows:
    own = [kinds["own"].measures.cosine for kinds in asked.values()]
    unrelated = {
        place: float(np.median(np.concatenate([np.sort(one, axis=1)[:, -place] for one in own])))
        for place in (9, 20, 30)
    }
    parts = []
    for name, kinds in asked.items():
        for kind, questions in kinds.items():
            for of in (questions, *questions.in_small):
                whole = of is questions
                kept = slice(None) if whole else slice(None, None, THINNED)
                right = of.standings(0.0)[1][kept]
                quiet = silent[name].get(kind, False) if whole else False
                parts.append(
                    _Rows(
                        {one: value[kept] for one, value in features(of, unrelated).items()},
                        right,
                        np.full(len(right), of.weight / len(right)),
                        np.full(len(right), simplified(name)),
                        np.full(len(right), kind if whole else "small"),
                        np.broadcast_to(quiet, right.shape),
                    )
                )
    return _Rows(
        {one: np.concatenate([part.table[one] for part in parts]) for one in parts[0].table},
        *(
            np.concatenate([getattr(part, one) for part in parts])
            for one in ("right", "weights", "sets", "kinds", "silent")
        ),
    )


def tried(
    asked: Mapping[str, Mapping[str, Questions]], silent: Mapping[str, Mapping[str, np.ndarray]]
) -> dict[str, dict[str, float]]:
    """Of every candidate the shares of each kind of question that are answered where 92 % of the right answers stay."""
    rows = _gathered(asked, silent)
    fields = [
        (f"{what} over {place}th", f"{what} over {place}th, wordless")
        for what in ("first", "nearest")
        for place in (9, 20, 30)
    ]
    found = {"before": _judged(rows, BEFORE)}
    for far, wordless in fields:
        found[far] = _judged(rows, ("near", "lead", far, "short", "small"))
        found[wordless] = _judged(rows, ("near", "lead", far, wordless, "short", "small"))
    for name in FURTHER:
        found[f"before + {name}"] = _judged(rows, (*BEFORE, name))
        found[f"chosen + {name}"] = _judged(rows, (*CHOSEN, name))
    for name in CHOSEN:
        found[f"chosen - {name}"] = _judged(rows, [one for one in CHOSEN if one != name])
    return found


def _judged(rows: _Rows, names: Sequence[str]) -> dict[str, float]:
    values, said = np.column_stack([rows.table[one] for one in names]), np.zeros(len(rows.right))
    start: np.ndarray | None = None
    for one in dict.fromkeys(rows.sets.tolist()):
        out = rows.sets == one
        weights = rows.weights[~out] / rows.weights[~out].sum()
        start = np.array(logistic(values[~out], rows.right[~out].astype(float), weights, start=start, pull=PULL))
        said[out] = values[out] @ start[:-1] + start[-1]
    said = np.where(rows.silent, -np.inf, said)
    right = np.sort(said[(rows.kinds == "own") & rows.right])
    border = right[int((1 - KEPT) * len(right))]
    kinds = ("elsewhere", "noise", "talk", "words", "removed")
    return {one: round(float(np.mean(said[rows.kinds == one] >= border)), 4) for one in kinds}
