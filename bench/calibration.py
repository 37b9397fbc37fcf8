"""Fits how searches read as probabilities, for the model as it is bundled, and says how well that holds elsewhere.

    python bench/calibration.py DEV_FOLDER [--cache FOLDER] [--write]

`--write` puts the constants into the bundled model.json, the reliability diagram into docs/, and beside the figures
what every other candidate for the confidence would do (`standing.py`). Every figure is of sets that were not fitted:
each is read with what the others gave. About five minutes of one core, half of it for vectors that are remembered in
the cache (outside of the repository).

Unanswerable questions are questions of other kinds of sets, the set's own with the right text removed, keyboard noise,
small talk, and single words that no text holds; in Chinese, English and both. With `opencc` installed traditional
Chinese is measured, too.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from homing.embedders.local import LocalProvider
from homing.embedders.model_folder import BUNDLED, DESCRIPTION
from homing.engine.ranking import MIN_CONFIDENCE, MIN_SCORE
from homing.models.calibrate import ELSEWHERE, REMOVED
from homing.models.fitting import Measures, Questions, fit, hits, measured_texts
from homing.text.small_talk import is_noise, is_small_talk
from homing.vectors import Fit
from measures import TALK, elsewhere, family, label, measure, noise, read_sets, remembered, simplified, words_of_others
from report import machine, show, write
from standing import tried

RESULTS = Path(__file__).parent / "results" / "calibration.json"
PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "reliability.svg"
QUESTIONS = 600
"""Questions of a set, at most: each set counts the same."""
WEIGHTS = {"own": 1.0, "removed": REMOVED, "elsewhere": ELSEWHERE, "noise": 0.25, "talk": 0.25, "words": 0.1}
BINS = 10
CAPABILITIES: Mapping[str, Callable[[str], bool]] = {
    "all": lambda _: True,
    "documents": lambda name: family(name) == "passages",
    "skills": lambda name: family(name) != "passages",
}


@dataclass(frozen=True)
class Set:
    """A development set as both legs see it, by kind of question."""

    name: str
    asked: Mapping[str, Questions]
    silent: Mapping[str, np.ndarray]
    """By kind, which say nothing whatever they find."""

    @property
    def own(self) -> Measures:
        return self.asked["own"].measures


def read(name: str, sets: Mapping, embedder: object) -> Set:
    golden = sets[name]
    own = [one for one in golden.questions if any(key in golden.corpus for key in one.relevant)]
    chosen = random.Random(1).sample(own, min(QUESTIONS, len(own)))
    with measured_texts(golden.corpus, embedder) as texts:
        measured = {
            "own": measure(texts, chosen),
            "elsewhere": texts.measure(elsewhere(name, sets)),
            "noise": texts.measure(noise()),
            "talk": texts.measure(TALK),
            "words": texts.measure(words_of_others(name, sets)),
        }
    words = measured["words"]
    unheard = words.bm25.max(axis=1) == 0
    measured["words"] = Measures(
        words.relevant[unheard], words.cosine[unheard], words.bm25[unheard], words.mass[unheard], words.rarest
    )
    asked = {kind: Questions(of, WEIGHTS[kind]) for kind, of in measured.items() if len(of.mass)}
    asked["removed"] = Questions(measured["own"], WEIGHTS["removed"], removed=True)
    silent = {
        "talk": np.array([is_small_talk(one) for one in TALK]),
        "noise": np.array([is_small_talk(one) for one in noise()])
        | (np.array([is_noise(one) for one in noise()]) & (measured["noise"].bm25.max(axis=1) == 0)),
    }
    return Set(name, asked, silent)


@dataclass(frozen=True)
class Reading:
    """What a fit says of a set: by kind of question how sure it is and whether it is right; and of drawn hits."""

    sure: Mapping[str, np.ndarray]
    right: Mapping[str, np.ndarray]
    first_score: np.ndarray
    scores: np.ndarray
    relevant: np.ndarray


def reading(of: Set, fitted: Fit) -> Reading:
    sure, right = {}, {}
    for kind, questions in of.asked.items():
        standings, good = questions.standings(fitted.unrelated)
        said = np.array([one.confidence(fitted) for one in standings])
        sure[kind], right[kind] = np.where(of.silent.get(kind, False), 0.0, said), good
    distances, relevant = hits(of.own, seed=7)
    first = of.own.distance.min(axis=1)
    few = of.own.smallness
    scores, firsts = (np.array([fitted.score(float(one), few) for one in part]) for part in (distances, first))
    return Reading(sure, right, firsts, scores, relevant)


def held_out(sets: Sequence[Set]) -> dict[str, Reading]:
    """Each set as read by what the others gave; twins of a set are left out with it."""
    without = {
        twin: fit([list(one.asked.values()) for one in sets if simplified(one.name) != twin])
        for twin in {simplified(one.name) for one in sets}
    }
    return {one.name: reading(one, without[simplified(one.name)]) for one in sets}


def calibration_error(said: np.ndarray, is_so: np.ndarray, weights: np.ndarray) -> float:
    """The mean gap between what was said and what was so, in ten bins."""
    at = np.minimum((said * BINS).astype(int), BINS - 1)
    gaps = [abs(((said - is_so) * weights)[at == one].sum()) for one in range(BINS)]
    return float(sum(gaps) / weights.sum())


def auc(said: np.ndarray, is_so: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(said, kind="stable")
    wrong = np.cumsum((weights * ~is_so)[order])
    good = (weights * is_so)[order]
    return float((good * wrong).sum() / (good.sum() * wrong[-1]))


def figures(readings: Sequence[Reading]) -> dict[str, float]:
    said, is_so, weights = answers(readings)
    scores = np.concatenate([one.scores for one in readings])
    relevant = np.concatenate([one.relevant for one in readings])
    kept = np.concatenate(
        [
            (one.sure["own"] >= MIN_CONFIDENCE)[one.right["own"]] & (one.first_score >= MIN_SCORE)[one.right["own"]]
            for one in readings
        ]
    )

    def answered(*kinds: str) -> float:
        return float(np.mean(np.concatenate([one.sure[kind] for one in readings for kind in kinds]) >= MIN_CONFIDENCE))

    return {
        "ece confidence": calibration_error(said, is_so, weights),
        "auc": auc(said, is_so, weights),
        "ece score": calibration_error(scores, relevant, np.ones(len(scores))),
        "kept": float(kept.mean()),
        "elsewhere": answered("elsewhere"),
        "noise": answered("noise"),
        "talk": answered("talk"),
        "removed": answered("removed"),
    }


def answers(readings: Sequence[Reading]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Confidence, whether the first hit was right, and weight, over all kinds of questions as they count."""
    parts = [(one.sure[kind], one.right[kind], WEIGHTS[kind]) for one in readings for kind in one.sure]
    return (
        np.concatenate([one for one, _, _ in parts]),
        np.concatenate([one for _, one, _ in parts]),
        np.concatenate([np.full(len(one), weight / len(one)) for one, _, weight in parts]),
    )


def bins(said: np.ndarray, is_so: np.ndarray, weights: np.ndarray) -> list[dict[str, float]]:
    at = np.minimum((said * BINS).astype(int), BINS - 1)
    found = []
    for one in range(BINS):
        here = at == one
        if weights[here].sum() > 0:
            share = weights[here].sum() / weights.sum()
            mean = np.average(said[here], weights=weights[here])
            right = np.average(is_so[here], weights=weights[here])
            found.append(
                {"said": round(float(mean), 3), "was": round(float(right), 3), "share": round(float(share), 3)}
            )
    return found


def picture(diagrams: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """Two squares: what was said along the bottom, what was so upwards; the larger a dot, the more there are."""
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 340" font-family="sans-serif" font-size="13">']
    for at, (name, points) in enumerate(diagrams.items()):
        left = 50 + at * 310
        parts.append(f'<rect x="{left}" y="30" width="250" height="250" fill="none" stroke="#999"/>')
        parts.append(f'<path d="M{left} 280L{left + 250} 30" stroke="#bbb" stroke-dasharray="4 4"/>')
        for one in points:
            x, y, r = left + 250 * one["said"], 280 - 250 * one["was"], 3 + 22 * one["share"] ** 0.5
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" fill="#2f6fb0" fill-opacity=".55"/>')
        parts.append(f'<text x="{left + 125}" y="20" text-anchor="middle" fill="#555">{name}</text>')
        for value in (0, 0.5, 1):
            parts.append(f'<text x="{left + 250 * value}" y="297" text-anchor="middle" fill="#777">{value:g}</text>')
            parts.append(f'<text x="{left - 6}" y="{284 - 250 * value}" text-anchor="end" fill="#777">{value:g}</text>')
        parts.append(f'<text x="{left + 125}" y="318" text-anchor="middle" fill="#777">said / 预测</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dev", type=Path)
    parser.add_argument("--cache", type=Path, default=Path("/tmp/homing-measures"))
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    golden = read_sets(args.dev)
    golden.pop("passages_q-zh_d-zht", None)
    embedder = remembered(LocalProvider(), args.cache)
    sets = [read(name, golden, embedder) for name in golden]
    plain = [one for one in sets if "zht" not in one.name]
    fitted = fit([list(one.asked.values()) for one in plain])
    found = held_out(sets)
    rows = {label(name): figures([one]) for name, one in found.items()}
    rows |= {
        f"** {name}": figures([one for which, one in found.items() if has(which)]) for name, has in CAPABILITIES.items()
    }
    show(
        "held out", [{"set": name} | {key: f"{value:.3f}" for key, value in row.items()} for name, row in rows.items()]
    )
    said, is_so, weights = answers(list(found.values()))
    right = np.sort(np.concatenate([one.sure["own"][one.right["own"]] for one in found.values()]))
    print(f"92 % of the right answers have a confidence of {right[int(0.08 * len(right))]:.3f} or more")
    scores = np.concatenate([one.scores for one in found.values()])
    relevant = np.concatenate([one.relevant for one in found.values()])
    diagrams = {
        "confidence of an answer": bins(said, is_so, weights),
        "score of a hit": bins(scores, relevant, np.ones(len(scores))),
    }
    print(json.dumps(asdict(fitted)))
    if not args.write:
        return
    described = json.loads((BUNDLED / DESCRIPTION).read_text(encoding="utf-8"))
    described["scale"]["fit"] = asdict(fitted)
    (BUNDLED / DESCRIPTION).write_text(json.dumps(described, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    PICTURE.write_text(picture(diagrams), encoding="utf-8")
    rounded = {name: {key: round(value, 4) for key, value in row.items()} for name, row in rows.items()}
    write(
        RESULTS,
        {
            "machine": machine(),
            "model": LocalProvider().id,
            "fit": asdict(fitted),
            "held out": rounded,
            "answered where 92 % of the right answers stay": tried(
                {one.name: one.asked for one in sets}, {one.name: one.silent for one in sets}
            ),
            "reliability": diagrams,
        },
    )


if __name__ == "__main__":
    main()
