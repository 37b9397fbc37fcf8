"""Fits the scale on which a model's cosines read as scores, on pairs that ship with Homing or on one's own texts."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from homing.embedders.provider import EmbeddingProvider
from homing.errors import InvalidArgument
from homing.models.config_service import LLMConfigService
from homing.models.records import FittedScale, LLMModel
from homing.text.paragraphs import paragraphs
from homing.text.sentences import sentence_ends
from homing.vectors import Scale

MIN_PAIRS = 20
"""Fewer pairs of a kind say nothing about a border."""
MAX_STEEPNESS = 40.0
"""Where the two kinds hardly overlap, steepness would grow without bound and every score become 0 or 1."""

PAIRS = "calibration_pairs.tsv"
MAX_PAIRS = 1_000
"""Pairs of one's own texts that are used: more say nothing new about two numbers."""
STRANGERS = 5
"""Unrelated partners of each text: what one is not about is most of what there is."""
MIN_CHARACTERS = 4
"""Characters that either side of a pair must have."""


def fit_scale(related: npt.ArrayLike, unrelated: npt.ArrayLike) -> Scale:
    """The scale that best tells related from unrelated pairs by their cosines, both kinds counting the same in total.

    A logistic regression of one variable: at the border a pair is as likely related as not. Refuses too few pairs, and
    cosines that do not rise with relatedness, since no border lies between them.
    """
    near, far = _cosines(related, "related"), _cosines(unrelated, "unrelated")
    if near.mean() <= far.mean():
        raise InvalidArgument(
            f"related pairs (mean cosine {near.mean():.3f}) are no closer than unrelated ones ({far.mean():.3f}); "
            "check that the pairs are what they are called, or that the model knows their language"
        )
    cosines = np.concatenate([near, far])
    labels = np.concatenate([np.ones(near.size), np.zeros(far.size)])
    weights = np.concatenate([np.full(near.size, 0.5 / near.size), np.full(far.size, 0.5 / far.size)])
    slope, offset = _logistic(cosines, labels, weights, start=_start(near, far))
    steepness = min(slope, MAX_STEEPNESS)
    return Scale(border=round(-offset / slope, 4), steepness=round(steepness, 3))


def _cosines(values: npt.ArrayLike, kind: str) -> npt.NDArray[np.float64]:
    cosines = np.asarray(values, dtype=np.float64).ravel()
    if cosines.size < MIN_PAIRS:
        raise InvalidArgument(f"{cosines.size} {kind} pairs are too few to fit a scale; give at least {MIN_PAIRS}")
    if not np.isfinite(cosines).all() or np.abs(cosines).max() > 1.001:
        raise InvalidArgument(f"the cosines of {kind} pairs must lie in [-1, 1]")
    return cosines


def _start(near: npt.NDArray[np.float64], far: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    slope = 4 / max(near.mean() - far.mean(), 0.1)
    return np.array([slope, -slope * (near.mean() + far.mean()) / 2])


def _logistic(
    x: npt.NDArray[np.float64],
    labels: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    *,
    start: npt.NDArray[np.float64],
) -> tuple[float, float]:
    """Newton's method on the weighted log loss with a faint pull of the slope to zero, so that it always has an end."""
    pull = 1e-6
    design = np.stack([x, np.ones_like(x)], axis=1)

    def loss(at: npt.NDArray[np.float64]) -> float:
        margin = design @ at
        return float(weights @ (np.logaddexp(0, margin) - labels * margin) + pull * at[0] ** 2 / 2)

    at = start
    for _ in range(100):
        chance = 1 / (1 + np.exp(-np.clip(design @ at, -500, 500)))
        gradient = design.T @ (weights * (chance - labels)) + pull * np.array([at[0], 0.0])
        curvature = (design * (weights * chance * (1 - chance))[:, None]).T @ design + np.diag([pull, 1e-12])
        step = np.linalg.solve(curvature, gradient)
        while loss(at - step) > loss(at) and np.abs(step).max() > 1e-12:
            step = step / 2
        at = at - step
        if np.abs(step).max() < 1e-9:
            break
    return float(at[0]), float(at[1])


@dataclass(frozen=True, slots=True)
class Pair:
    """A text and another that belongs to it; `source` tells texts apart that may be about the same."""

    question: str
    answer: str
    source: int


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What was fitted, and how it tells the two kinds apart: the share of each on its side of 0.5."""

    scale: Scale
    pairs: int
    related_above: float
    unrelated_below: float


def shipped_pairs() -> list[Pair]:
    """A hundred and fifty everyday pairs: Chinese, English, and one in each."""
    lines = files("homing.models").joinpath(PAIRS).read_text(encoding="utf-8").splitlines()
    return [Pair(question, answer, at) for at, (question, answer) in enumerate(line.split("\t") for line in lines)]


def pairs_of(texts: Sequence[str]) -> list[Pair]:
    """Pairs from one's own texts: the heading or first sentence of a paragraph, and the rest of it."""
    found = [pair for at, text in enumerate(texts) for pair in _split(text, at)]
    return found if len(found) <= MAX_PAIRS else random.Random(0).sample(found, MAX_PAIRS)


def calibrate(embedder: EmbeddingProvider, pairs: Sequence[Pair]) -> Calibrated:
    """The scale of a model. Raises InvalidArgument where the pairs are too few or the model cannot tell them."""
    if not pairs:
        raise InvalidArgument("there are no pairs to fit a scale on; the texts need paragraphs of several sentences")
    questions = embedder.embed([pair.question for pair in pairs], kind="query")
    answers = embedder.embed([pair.answer for pair in pairs], kind="document")
    related = np.einsum("ij,ij->i", questions, answers)
    left, right = zip(*_strangers(pairs), strict=True)
    unrelated = np.einsum("ij,ij->i", questions[list(left)], answers[list(right)])
    scale = fit_scale(related, unrelated)
    return Calibrated(
        scale, len(pairs), float((related >= scale.border).mean()), float((unrelated < scale.border).mean())
    )


def keep_scale(service: LLMConfigService, model: LLMModel, scale: Scale) -> LLMModel:
    """Keep a scale with the configuration of a model: it holds from the next call on."""
    fitted = FittedScale(border=scale.border, steepness=scale.steepness)
    return service.update_model(model.id, model_config=model.model_config.model_copy(update={"scale": fitted}))


def _strangers(pairs: Sequence[Pair]) -> list[tuple[int, int]]:
    """Positions of questions and answers that do not belong together, of different sources where there are several."""
    chance = random.Random(0)
    several = len({pair.source for pair in pairs}) > 1
    chosen = []
    for at, pair in enumerate(pairs):
        others = [
            other
            for other, one in enumerate(pairs)
            if (one.source != pair.source if several else other != at)
            and pair.question != one.question
            and pair.answer != one.answer
        ]
        chosen += [(at, other) for other in chance.sample(others, min(STRANGERS, len(others)))]
    if not chosen:
        raise InvalidArgument("all pairs are about the same; give texts about different things")
    return chosen


def _split(text: str, source: int) -> Iterator[Pair]:
    for paragraph in paragraphs(text):
        body = paragraph.text
        line = body.find("\n")
        end = line if line > 0 else next(sentence_ends(body, 0, len(body)), 0)
        question, answer = body[:end].lstrip("#").strip(), body[end:].strip()
        if min(len(question), len(answer)) >= MIN_CHARACTERS:
            yield Pair(question, answer, source)
