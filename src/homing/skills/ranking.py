"""How well each skill fits a query: a similarity that keyword evidence brings nearer to 1. Pure, in memory.

What a skill is near to is the query's vector; the nearer of its head (name, description, tags) and its best passage
counts, the passage a little less. Keywords shorten what is left of the distance:

    distance = (1 - cosine) · exp(-LIFT · shared)

where `shared` is BM25 in units of rare words. So a skill that shares no word with the query keeps its similarity, each
word that it does share brings it nearer to 1, a score never depends on the other hits, and it reads like a similarity.
The score is that similarity on the model's scale, whose border moves with the number of skills: 0.5 is where the best
of them is as likely to be near by chance. Without a vector the share of the query that a skill holds is its score. An
exact name is 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from homing.skills.terms import Floats, KeywordIndex, Terms
from homing.text.folding import fold
from homing.text.tokens import query_terms
from homing.vectors import Matrix, Scale, Vector, score_of

LIFT = 0.5
"""How much a shared rare word shortens the distance; measured, see bench/skills.py."""
BODY_MARGIN = 0.05
"""How much nearer a passage of the body must be than the head to count in its place."""
CHANCE = 0.5
"""How much the number of skills counts in a score; measured, see bench/skills.py."""
SAME = 0.985
"""Cosine of two heads from which on they say the same; equal descriptions do in any case."""
CROWD = 0.4
"""The share of an answer that skills which say the same may take while there are others."""

_BETWEEN = re.compile(r"[^\w+#]|_")


@dataclass(frozen=True, slots=True)
class Ranked:
    """A skill's place in a ranking, and what speaks for it.

    `passage` is its nearest passage and `wordy` the one that shares most with the query; `shared` and `passage_shared`
    count the rare words that its head and that passage share with the query.
    """

    position: int
    score: float
    cosine: float | None
    passage_cosine: float | None
    passage: int | None
    shared: float
    passage_shared: float
    wordy: int | None
    named: bool


class Ranker:
    """Skills by position, ready to be asked by any number of threads.

    `vectors` has a row for each skill and then one for each passage, of unit length, zero where there is none; `owners`
    says which skill a passage belongs to, ascending.
    """

    def __init__(
        self,
        names: Sequence[str],
        descriptions: Sequence[str],
        head_terms: Sequence[Terms],
        passage_terms: Sequence[Terms],
        vectors: Matrix,
        owners: npt.NDArray[np.int32],
    ) -> None:
        self._vectors = vectors
        self._owners = owners
        self._head_words = KeywordIndex(head_terms)
        self._passage_words = KeywordIndex(passage_terms)
        self._by_name: dict[str, list[int]] = {}
        for position, name in enumerate(names):
            self._by_name.setdefault(name_key(name) or name, []).append(position)
        first: dict[str, int] = {}
        self._descriptions = np.array(
            [first.setdefault(text, at) if text else at for at, text in enumerate(descriptions)], np.int64
        )
        # Where the passages of each skill that has some begin.
        self._with_body, self._begins = np.unique(owners, return_index=True)

    @property
    def size(self) -> int:
        """How many skills there are."""
        return self._head_words.size

    def rank(self, query: str, vector: Vector | None, scale: Scale | None, limit: int) -> list[Ranked]:
        """The skills that fit best, best first; near-duplicates take only so much of the room.

        Without a vector only those that share a word with the query.
        """
        terms = query_terms(query)
        head, body = self._head_words.evidence(terms), self._passage_words.evidence(terms)
        best_shared, shared_at = self._best(body.shared)
        named = self._by_name.get(name_key(query) or query, [])
        if vector is None:
            fits = np.maximum(head.coverage, self._best(body.coverage)[0]).astype(np.float64)
            cosines, best_cosine, passage_at = None, None, shared_at
        else:
            near = self._vectors @ vector
            cosines = near[: self.size]
            best_cosine, passage_at = self._best(near[self.size :])
            nearest = np.maximum(cosines, np.where(passage_at >= 0, best_cosine - BODY_MARGIN, -1.0))
            shared = np.maximum(head.shared, best_shared)
            fits = 1 - (1 - nearest.astype(np.float64)) * np.exp(-LIFT * shared.astype(np.float64))
        fits[named] = 1.0
        candidates = np.flatnonzero(fits > 0) if vector is None else np.arange(self.size)
        order = candidates[np.lexsort((candidates, -fits[candidates]))]
        exact = set(named)
        readable = None if vector is None else among(scale, self.size)
        return [
            Ranked(
                position=at,
                score=_readable(float(fits[at]), readable),
                cosine=None if cosines is None else float(cosines[at]),
                passage_cosine=None if best_cosine is None or passage_at[at] < 0 else float(best_cosine[at]),
                passage=int(passage_at[at]) if passage_at[at] >= 0 else None,
                shared=float(head.shared[at]),
                passage_shared=float(best_shared[at]),
                wordy=int(shared_at[at]) if best_shared[at] > 0 else None,
                named=at in exact,
            )
            for at in self._varied(order, limit)
        ]

    def _best(self, values: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
        """For each skill the best of its passages and which one that is; -1 where it has none."""
        best = np.zeros(self.size, np.float32)
        at = np.full(self.size, -1, np.int64)
        if len(values):
            best[self._with_body] = np.maximum.reduceat(values, self._begins)
            hits = np.flatnonzero(values == best[self._owners])
            # The first of equal ones: written last.
            at[self._owners[hits[::-1]]] = hits[::-1]
        return best, at

    def _varied(self, order: npt.NDArray[np.int64], limit: int) -> list[int]:
        """The first `limit`, of which no more than `CROWD` say the same; where there is room, others after all."""
        most = max(1, round(CROWD * limit))
        chosen: list[int] = []
        crowded: list[int] = []
        for at in order.tolist():
            if len(chosen) == limit:
                break
            alike = self._vectors[chosen] @ self._vectors[at] >= SAME
            same = int((alike | (self._descriptions[chosen] == self._descriptions[at])).sum())
            (crowded if same >= most else chosen).append(at)
        kept = set(chosen + crowded[: limit - len(chosen)])
        return [at for at in order[: len(chosen) + len(crowded)].tolist() if at in kept]


def name_key(text: str) -> str:
    """A name without case, joints and white space: `Git Commit`, `git_commit` and `/git-commit` are one."""
    return _BETWEEN.sub("", fold(text).casefold())


def among(scale: Scale | None, size: int) -> Scale | None:
    """A model's scale for the best of so many: its border says what one pair means, and one of many is near by chance.

    Of n skills each is the right one with odds of 1 to n before anything is known of it, which moves the border by
    ln(n); half of that counts, because of many skills several may be right.
    """
    if scale is None or size < 2:
        return scale
    return Scale(scale.border + CHANCE * math.log(size) / scale.steepness, scale.steepness)


def _readable(fit: float, scale: Scale | None) -> float:
    return max(0.0, min(1.0, score_of(fit, scale)))
