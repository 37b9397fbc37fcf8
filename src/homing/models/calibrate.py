"""Fits the scale on which a model's cosines read as scores, on pairs that ship with Homing or on one's own texts."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from homing.embedders.provider import EmbeddingProvider
from homing.errors import InvalidArgument
from homing.models.config_service import LLMConfigService
from homing.models.fitting import Questions, fit, logistic, measured_texts
from homing.models.records import FittedScale, LLMModel
from homing.text.paragraphs import paragraphs
from homing.text.sentences import sentence_ends
from homing.vectors import Fit, Scale

MIN_PAIRS = 20
"""Fewer pairs of a kind say nothing about a border."""
MAX_STEEPNESS = 40.0
"""Where the two kinds hardly overlap, steepness would grow without bound and every score become 0 or 1."""

PAIRS = "calibration_pairs.tsv"
MAX_PAIRS = 1_000
"""Pairs of one's own texts that are used: more say nothing new about two numbers."""
STRANGERS = 5
"""Unrelated partners of each text: what one is not about is most of what there is."""
REMOVED, ELSEWHERE, TALK = 0.25, 0.6, 0.5
"""How much unanswerable questions count beside the others: the right text is gone, they belong elsewhere, are none."""
NONSENSE = (
    "asdf qwer", "zzqqxx", "jkl; uiop", "vbnm vbnm", "xkcd qjzw vwx", "123456", "???", "……", "……？！", "0", "aaaa bbbb",
    "的的的", "是了在", "么之于就", "天天 zxcv", "我 qwe 你", "lorem xqz", "哈哈哈哈", "你好",
    "hello", "ok", "谢谢", "good night",
)  # fmt: skip
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
    slope, offset = logistic(cosines[:, None], labels, weights, start=_start(near, far))
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
    scale = replace(fit_scale(related, unrelated), fit=_fit(embedder, pairs))
    return Calibrated(
        scale, len(pairs), float((related >= scale.border).mean()), float((unrelated < scale.border).mean())
    )


def keep_scale(service: LLMConfigService, model: LLMModel, scale: Scale) -> LLMModel:
    """Keep a scale with the configuration of a model: it holds from the next call on."""
    fitted = FittedScale(border=scale.border, steepness=scale.steepness, fit=scale.fit)
    return service.update_model(model.id, model_config=model.model_config.model_copy(update={"scale": fitted}))


def _fit(embedder: EmbeddingProvider, pairs: Sequence[Pair]) -> Fit:
    """What reads searches in these texts: each half is asked its own questions, those of the other, and nonsense."""
    halves, collections = (pairs[0::2], pairs[1::2]), []
    for mine, others in (halves, halves[::-1]):
        with measured_texts({str(at): one.answer for at, one in enumerate(mine)}, embedder) as texts:
            own = texts.measure([one.question for one in mine], [[str(at)] for at in range(len(mine))])
            elsewhere = texts.measure([one.question for one in others])
            nonsense = texts.measure(NONSENSE)
        collections.append(
            [
                Questions(own),
                Questions(own, REMOVED, removed=True),
                Questions(elsewhere, ELSEWHERE),
                Questions(nonsense, TALK),
            ]
        )
    return fit(collections)


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
        end = line if line > 0 else next(sentence_ends(body), 0)
        question, answer = body[:end].lstrip("#").strip(), body[end:].strip()
        if min(len(question), len(answer)) >= MIN_CHARACTERS:
            yield Pair(question, answer, source)
