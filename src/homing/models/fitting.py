"""Fits how searches read as probabilities: what both legs measure for questions whose answers are known.

The measures come from a store and the ranking of the product, so that what is fitted is what is searched with.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from homing.embedders.provider import EmbeddingProvider
from homing.engine.batch import embed_long
from homing.engine.ranking import FIELD, LIFT, SAME, Standing, smallness
from homing.records import VectorRecord
from homing.stores.registry import open_store
from homing.stores.store import MAX_LIMIT, Store, Words
from homing.vectors import Fit

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

COLLECTION = "texts"
BATCH = 64
PULL = 1e-4
"""How strongly slopes are pulled to zero where right and wrong hardly overlap."""
MAX_POWER = 12.0
SMALL = (4, 12, 40, 150)
"""Numbers of texts that small collections have."""
NEAR = 10
"""Ranks from the second to this one are near misses, where they are not relevant."""


@dataclass(frozen=True)
class Measures:
    """Of every question (rows) and every text (columns): whether it is relevant, its cosine and its BM25; of every
    question what its words are worth."""

    relevant: Flags
    cosine: Numbers
    bm25: Numbers
    mass: Numbers
    rarest: float

    @property
    def smallness(self) -> float:
        """How few texts there are."""
        return smallness(self.cosine.shape[1])

    def among(self, texts: int, *, seed: int = 0) -> Measures:
        """As if there were only so many texts: the relevant ones first, others at random."""
        order = np.argsort(np.random.default_rng(seed).random(self.cosine.shape) - 2 * self.relevant, axis=1)[:, :texts]
        cosine, bm25 = np.take_along_axis(self.cosine, order, axis=1), np.take_along_axis(self.bm25, order, axis=1)
        return Measures(np.take_along_axis(self.relevant, order, axis=1), cosine, bm25, self.mass, self.rarest)

    @property
    def distance(self) -> Numbers:
        """The fused distance, as `ranking.similarity` has it."""
        worth = np.sqrt(np.maximum(self.mass, 1e-9) * max(self.rarest, 1e-9))[:, None]
        return (1 - self.cosine) * np.exp(-LIFT * self.bm25 / worth)


@dataclass(frozen=True)
class Questions:
    """Questions to one collection, and how much they count there; `removed` as if their right answers were gone."""

    measures: Measures
    weight: float = 1.0
    removed: bool = False

    def standings(self, unrelated: float) -> tuple[list[Standing], Flags]:
        """How the first hit of each stands out, and whether it is right."""
        of, (distances, cosines, nearest, right) = self.measures, self._first
        rows = zip(distances.tolist(), cosines.tolist(), nearest.tolist(), of.mass.tolist(), strict=True)
        found = [
            Standing.of(distance, cosine, near, Words((), mass, of.rarest, of.cosine.shape[1]), unrelated)
            for distance, cosine, near, mass in rows
        ]
        return found, right

    @cached_property
    def _first(self) -> tuple[Numbers, Numbers, Numbers, Flags]:
        """Of each, the distances of the first two hits, the cosine of the first, those of the nearest, and whether the
        first is right."""
        of = self.measures
        distance, cosine = of.distance, of.cosine
        if self.removed:
            distance, cosine = np.where(of.relevant, 2.0, distance), np.where(of.relevant, -1.0, cosine)
        order = np.argsort(distance, axis=1, kind="stable")[:, :2]
        first = order[:, :1]
        right = np.take_along_axis(of.relevant, first, axis=1)[:, 0] & (not self.removed)
        distances, cosines = np.take_along_axis(distance, order, axis=1), np.take_along_axis(cosine, first, axis=1)
        return distances, cosines[:, 0], -np.sort(-cosine, axis=1)[:, :FIELD], right

    @cached_property
    def in_small(self) -> tuple[Questions, ...]:
        """The same as if there were fewer texts, as many as there are in small collections."""
        return tuple(
            replace(self, measures=self.measures.among(texts, seed=texts), weight=self.weight / len(SMALL))
            for texts in SMALL
            if texts < self.measures.cosine.shape[1]
        )


class MeasuredTexts:
    """Texts in a store of their own, to be asked whatever one likes."""

    def __init__(self, texts: Mapping[str, str], store: Store, embedder: EmbeddingProvider) -> None:
        self._store, self._embedder = store, embedder
        self._at = {one: at for at, one in enumerate(texts)}
        written = list(texts.values())
        parts = [embed_long(embedder, written[at : at + BATCH]) for at in range(0, len(written), BATCH)]
        self._rows = np.concatenate(parts)
        store.upsert(VectorRecord(one, COLLECTION, None, {}, text) for one, text in texts.items())

    def measure(self, questions: Sequence[str], relevant: Sequence[Sequence[str]] | None = None) -> Measures:
        """What both legs say of these questions, to which nothing here is relevant unless it is said."""
        cosine = np.asarray(self._embedder.embed(questions, kind="query") @ self._rows.T, np.float64)
        bm25, known = np.zeros(cosine.shape), np.zeros(cosine.shape, bool)
        mass, rarest = np.zeros(len(questions)), 0.0
        for row, question in enumerate(questions):
            words = self._store.search_words(COLLECTION, question, MAX_LIMIT)
            mass[row], rarest = words.mass, words.rarest
            for one in words.found:
                bm25[row, self._at[one.id]] = one.bm25
            for key in relevant[row] if relevant is not None else ():
                if key in self._at:
                    known[row, self._at[key]] = True
        return Measures(known, cosine, bm25, mass, rarest)


@contextmanager
def measured_texts(texts: Mapping[str, str], embedder: EmbeddingProvider) -> Iterator[MeasuredTexts]:
    """Texts in a store that is gone afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="homing-fit-") as folder,
        closing(open_store(f"sqlite:///{Path(folder) / 'texts.db'}")) as store,
    ):
        yield MeasuredTexts(texts, store, embedder)


def fit(collections: Sequence[Sequence[Questions]]) -> Fit:
    """What reads searches of a model best; each collection counts the same, and its questions as they say.

    The score is fitted to hits, one that is relevant, one that is nearly and one at random for each question; the
    confidence to first hits, right or wrong.
    """
    asked = [one for collection in collections for one in collection]
    small = [few for one in asked for few in one.in_small]
    answerable = [one.measures for one in asked if one.measures.relevant.any() and not one.removed]
    field = [np.sort(one.cosine, axis=1)[:, -min(FIELD, one.cosine.shape[1])] for one in answerable]
    unrelated = round(float(np.median(np.concatenate(field))), 4)
    drawn = [hits(one, seed=at) for at, one in enumerate(answerable)]
    distances, labels, shares = _joined(drawn, [1.0] * len(drawn))
    power, offset = logistic(-np.log(np.maximum(distances, SAME))[:, None], labels, shares, pull=PULL)
    power = min(power, MAX_POWER)
    few = _among_few(power, offset, [one.measures for one in small if one.measures.relevant.any() and not one.removed])
    every = [*asked, *small]
    stands = [one.standings(unrelated) for one in every]
    found = [(np.array([astuple(one) for one in standing]), right) for standing, right in stands]
    features, right, weights = _joined(found, [one.weight for one in every])
    slopes = [round(one, 4) for one in logistic(features, right, weights, pull=PULL)]
    weighed = dict(zip((*(one.name for one in fields(Standing)), "bias"), slopes, strict=True))
    border = round(float(np.exp(offset / power)), 4)
    sharper, more = few
    return Fit(border, round(power, 4), sharper, more, unrelated=unrelated, **weighed)


def _among_few(power: float, offset: float, small: Sequence[Measures]) -> tuple[float, float]:
    """How much more, and how much more sharply, distances tell among few texts, where nothing is near by chance."""
    drawn = [hits(one, seed=at) for at, one in enumerate(small)]
    if not drawn:
        return 0.0, 0.0
    near = [-np.log(np.maximum(one, SAME)) for one, _ in drawn]
    parts = [
        np.stack([one * of.smallness, np.full(len(one), of.smallness)], 1) for one, of in zip(near, small, strict=True)
    ]
    seen, labels, shares = _joined(
        [(one, label) for one, (_, label) in zip(parts, drawn, strict=True)], [1.0] * len(drawn)
    )
    known = power * np.concatenate(near) + offset
    sharper, few, _ = logistic(seen, labels, shares, pull=PULL, known=known, constant=False)
    return round(max(0.0, sharper), 4), round(few, 4)


def hits(of: Measures, *, seed: int = 0) -> tuple[Numbers, Flags]:
    """Distances of hits, a relevant, a near and a random one for each question that has an answer; and which are."""
    draw, distance = np.random.default_rng(seed), of.distance
    found, labels = [], []
    for row in np.flatnonzero(of.relevant.any(axis=1) & ~of.relevant.all(axis=1)):
        order = np.argsort(distance[row], kind="stable")[1:NEAR]
        near = order[~of.relevant[row, order]]
        others = np.flatnonzero(~of.relevant[row])
        chosen = [draw.choice(np.flatnonzero(of.relevant[row])), draw.choice(near if len(near) else others)]
        found += [distance[row, one] for one in (*chosen, draw.choice(others))]
        labels += [True, False, False]
    return np.array(found), np.array(labels, bool)


def _joined(
    parts: Sequence[tuple[npt.NDArray[np.float64], Flags]], weights: Sequence[float]
) -> tuple[Numbers, Numbers, Numbers]:
    """Values, labels and weights of all parts together; a part counts as much as it should, however long it is."""
    kept = [(values, labels, weight) for (values, labels), weight in zip(parts, weights, strict=True) if len(labels)]
    shares = np.concatenate([np.full(len(labels), weight / len(labels)) for _, labels, weight in kept])
    return (
        np.concatenate([values for values, _, _ in kept]),
        np.concatenate([labels for _, labels, _ in kept]).astype(np.float64),
        shares / shares.sum(),
    )


def logistic(
    x: Numbers,
    labels: Numbers,
    weights: Numbers,
    *,
    start: Numbers | None = None,
    pull: float = 1e-6,
    known: Numbers | float = 0.0,
    constant: bool = True,
) -> list[float]:
    """Slopes and offset: Newton's method on the weighted log loss with a faint pull of the slopes to zero, so that it
    always has an end. `known` is what is known of each margin already; without a `constant` the offset is 0."""
    design = np.hstack([x, np.full((len(x), 1), float(constant))])
    pulled = np.append(np.full(x.shape[1], pull), 0.0 if constant else 1.0)

    def loss(at: Numbers) -> float:
        margin = design @ at + known
        return float(weights @ (np.logaddexp(0, margin) - labels * margin) + pulled @ at**2 / 2)

    at = np.zeros(design.shape[1]) if start is None else start
    for _ in range(100):
        chance = 1 / (1 + np.exp(-np.clip(design @ at + known, -500, 500)))
        gradient = design.T @ (weights * (chance - labels)) + pulled * at
        curvature = (design * (weights * chance * (1 - chance))[:, None]).T @ design + np.diag(pulled + 1e-12)
        step = np.linalg.solve(curvature, gradient)
        while loss(at - step) > loss(at) and np.abs(step).max() > 1e-12:
            step = step / 2
        at = at - step
        if np.abs(step).max() < 1e-9:
            break
    return [float(one) for one in at]
