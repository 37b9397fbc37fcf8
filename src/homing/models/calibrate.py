"""Fits the scale on which a model's cosines read as scores, on pairs that ship with Homing or on one's own texts."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from homing.embedders.calibration import fit_scale
from homing.embedders.provider import EmbeddingProvider
from homing.errors import InvalidArgument
from homing.models.config_service import LLMConfigService
from homing.models.records import FittedScale, LLMModel
from homing.text.paragraphs import paragraphs
from homing.text.sentences import sentence_ends
from homing.vectors import Scale

PAIRS = "calibration_pairs.tsv"
MOST = 1_000
"""Pairs of one's own texts that are used: more say nothing new about two numbers."""
OTHERS = 5
"""Unrelated partners of each text: what one is not about is most of what there is."""
SHORTEST = 4
"""Characters that either side of a pair must have."""


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
    return found if len(found) <= MOST else random.Random(0).sample(found, MOST)


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
        chosen += [(at, other) for other in chance.sample(others, min(OTHERS, len(others)))]
    if not chosen:
        raise InvalidArgument("all pairs are about the same; give texts about different things")
    return chosen


def _split(text: str, source: int) -> Iterator[Pair]:
    for paragraph in paragraphs(text):
        body = paragraph.text
        line = body.find("\n")
        end = line if line > 0 else next(sentence_ends(body, 0, len(body)), 0)
        question, answer = body[:end].lstrip("#").strip(), body[end:].strip()
        if min(len(question), len(answer)) >= SHORTEST:
            yield Pair(question, answer, source)
