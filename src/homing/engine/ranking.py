"""How the legs become one order, in two ways; pure.

Reciprocal rank fusion (`rrf`) knows places only. The default (`rank`) knows how near each candidate is: its cosine,
brought nearer to 1 by the words that it shares with the query.

    distance = (1 - cosine) · exp(-LIFT · evidence)        evidence = bm25 / √(mass · rarest)

So a text that shares no word keeps its cosine, each word that it does share brings it nearer, and no hit depends on
another. `mass` keeps long requests from drowning in stray words, `rarest` (a word that a single text holds) keeps the
evidence from growing with the collection. A text that waits for its vector is ranked by how much of the query's mass it
covers.

Two probabilities are read off that, as far as a model was fitted for it (`vectors.Fit`): the `score` of a hit, that it
is about the query, from its distance alone; and the `confidence` of an answer, that its first hit is right, from how it
stands out. By default an answer is cut at both (`cut`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from homing.errors import InvalidArgument
from homing.stores.store import Measured, Words
from homing.text.small_talk import is_noise, is_small_talk
from homing.text.tokens import query_terms
from homing.vectors import Fit, Scale, score_of

DEFAULT_K = 60
"""How little the first places of a ranking stand out; the value of the original paper."""

LIFT = 1.0
"""How much evidence shortens the distance; measured, see bench/ranking.py."""
MIN_CONFIDENCE = 0.12
"""The default cut of answers: one that is less likely to begin with a right hit says nothing."""
MIN_SCORE = 0.2
"""The default cut of hits; right ones in another language than the question score .2 to .5 (bench/calibration.py)."""
HELD = 0.25
"""The share of a query's mass from which on a hit holds its words: a long text that says each once covers no more."""
A_WORD_OR_TWO = 6
"""Terms of a query that is looked up rather than asked; a Chinese word of two characters has three."""
NEAREST = 0.9
"""How near (−ln of the distance) is near enough: beyond it only the lead over the others says more."""
SAME = 1e-3
"""A distance below which two texts are the same."""
MANY = 400
"""Texts from which on it makes no difference how many there are."""
FIELD = 20
"""Which of the nearest texts stands for those that the query is not about."""
FEWEST = 9
"""Texts below which there is no field to stand out from."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ids one leg returned, best first, and how much that leg counts."""

    name: str
    ids: Sequence[str]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Fused:
    """An id with its fused score, and per ranking its place (from 1) and what that place contributed."""

    id: str
    score: float
    ranks: Mapping[str, int]
    shares: Mapping[str, float]


def rrf(rankings: Sequence[Ranking], *, k: int = DEFAULT_K) -> list[Fused]:
    """Fuse rankings by `sum(weight / (k + rank))`, ranks from 1, best first, ties broken by id.

    An id that one ranking names twice counts once, at its better place. Weights need not add up to 1.
    """
    if k < 0:
        raise InvalidArgument(f"rrf k must not be negative; got {k}")
    ranks: dict[str, dict[str, int]] = {}
    shares: dict[str, dict[str, float]] = {}
    for ranking in rankings:
        for rank, item in enumerate(dict.fromkeys(ranking.ids), start=1):
            ranks.setdefault(item, {})[ranking.name] = rank
            shares.setdefault(item, {})[ranking.name] = ranking.weight / (k + rank)
    fused = [Fused(item, sum(shares[item].values()), ranks[item], shares[item]) for item in ranks]
    return sorted(fused, key=lambda one: (-one.score, one.id))


class Ranked(NamedTuple):
    """A candidate with its similarity in [-1, 1]; without a cosine, the share of the query that it covers."""

    id: str
    similarity: float
    cosine: float | None
    bm25: float

    @property
    def by_words(self) -> float:
        """What the words brought to the similarity."""
        return self.similarity - (self.cosine or 0.0)


def rank(candidates: Sequence[Measured], words: Words) -> list[Ranked]:
    """The candidates, the nearest first; ties by id. `words` says what the words of the query are worth."""
    ranked = [
        Ranked(one.id, similarity(one.cosine, *worth(one.bm25, words)), one.cosine, one.bm25) for one in candidates
    ]
    return sorted(ranked, key=lambda one: (-one.similarity, one.id))


def similarity(cosine: float | None, evidence: float, coverage: float) -> float:
    """How near something is by both measures; by words alone where it has no vector."""
    return coverage if cosine is None else 1 - (1 - cosine) * math.exp(-LIFT * evidence)


def worth(bm25: float, words: Words) -> tuple[float, float]:
    """The evidence of a BM25, and the share of the query's mass that it covers, in [0, 1)."""
    if words.mass <= 0:
        return 0.0, 0.0
    return bm25 / math.sqrt(words.mass * words.rarest) if words.rarest > 0 else 0.0, bm25 / words.mass


def smallness(texts: int) -> float:
    """How few texts there are; 0 from some hundreds on. Of few texts, hardly one is near by chance."""
    return math.log(MANY / min(max(texts, 1), MANY))


def score(similarity: float, scale: Scale | None, words: Words) -> float:
    """The probability that a hit is about the query; of a model that was never fitted, its similarity as it reads."""
    if scale is None or scale.fit is None:
        return score_of(similarity, scale)
    return scale.fit.score(1 - similarity, smallness(words.texts))


@dataclass(frozen=True, slots=True)
class Standing:
    """How the first hit of an answer stands out: how near it is, its lead over the second, what by meaning alone the
    nearest has over the field (and the same once more where the first hit shares no word, as in another language),
    whether the query says less than one rare word does, and how few texts there are."""

    near: float
    lead: float
    field: float
    wordless: float
    short: float
    small: float

    @classmethod
    def of(
        cls, distances: Sequence[float], cosine: float, cosines: Sequence[float], words: Words, unrelated: float
    ) -> Standing:
        """Of hits at these distances, the first with this cosine; `cosines` are those of the nearest, best first."""
        first = max(distances[0], SAME)
        second = max(distances[1] if len(distances) > 1 else 1 - unrelated, first)
        field = cosines[0] - (cosines[FIELD - 1] if len(cosines) >= FIELD else unrelated)
        length = max(words.mass, 0.01 * words.rarest) / words.rarest if words.rarest > 0 else 1.0
        return cls(
            min(-math.log(first), NEAREST),
            math.sqrt(math.log(second / first)),
            field,
            field if distances[0] > 1 - cosine - SAME**2 else 0.0,
            min(0.0, math.log(length)),
            smallness(words.texts),
        )

    def confidence(self, fit: Fit) -> float:
        """The probability that the first hit is right."""
        margin = fit.bias + fit.near * self.near + fit.lead * self.lead + fit.field * self.field
        margin += fit.wordless * self.wordless + fit.short * self.short + fit.small * self.small
        return 1 / (1 + math.exp(-max(-500.0, min(500.0, margin))))


def _is_common(query: str, words: Words) -> bool:
    """Whether a query is a word or two that, together, say less than one which a single text holds."""
    return 0 < words.mass < words.rarest and len(query_terms(query)) <= A_WORD_OR_TWO


def _coverage(similarity: float, cosine: float, words: Words) -> float:
    """The share of the query's mass that a hit covers, read from how much its words shortened the distance."""
    evidence = math.log(max(1 - cosine, SAME) / max(1 - similarity, SAME)) / LIFT
    return evidence * math.sqrt(words.rarest / words.mass)


def is_silent(confidence: float | None) -> bool:
    """Whether an answer says nothing by default: it is known not to be likely enough."""
    return confidence is not None and confidence < MIN_CONFIDENCE


def confidence(
    query: str, measures: Sequence[tuple[float, float | None]], words: Words | None, scale: Scale | None
) -> float | None:
    """The probability that the first hit of an answer is right; None where nothing was fitted, where it has no vector,
    among so few texts that there is no field to stand out from, and of common words that it holds: none of the texts
    which hold them is more right than the others.

    `measures` are similarity and cosine of the candidates, the best first. Small talk and noise are about nothing.
    """
    if words is None or not measures:
        return None
    if is_small_talk(query) or ((words.corrected or not words.found) and is_noise(query)):
        return 0.0
    if scale is None or scale.fit is None or measures[0][1] is None or words.texts < FEWEST:
        return None
    if _is_common(query, words) and _coverage(measures[0][0], measures[0][1], words) >= HELD:
        return None
    distances = [1 - similarity for similarity, cosine in measures[:2] if cosine is not None]
    cosines = sorted((cosine for _, cosine in measures if cosine is not None), reverse=True)
    return Standing.of(distances, measures[0][1], cosines, words, scale.fit.unrelated).confidence(scale.fit)
