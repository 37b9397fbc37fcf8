"""What texts score by the terms of a query: exact BM25.

A text's score is summed term by term, the weightiest first: it does not depend on the segment that the text lies in.
A term brings less than its weight. So once some texts have scored more than the common terms of the query can bring
together, the other segments are read for the weightier terms alone, and for the common ones only those of their texts
are looked up that may still be among the best.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from homing.stores.postings.index import Group, Mask, Places, ReadLists, Scores, Term, View
from homing.stores.postings.segment import Keys, Postings, Range

COLUMNS = 512
"""Columns that texts are laid out in to see what the best score, at least."""
LEFT = 0.5
"""How much of what the best score is left to the terms that are not read: the less, the fewer texts are in question."""
LONG = 1_000
"""Postings of a term from which on it is scored by itself: of shorter ones, many are scored at once."""
ANY = 5e-324
"""The smallest score there is."""


class Question:
    """Terms that are asked of a view: what they are worth, and what texts score by them."""

    def __init__(self, view: View, terms: Sequence[str], read: ReadLists) -> None:
        self._view = view
        self._read = read
        self._terms = view.terms(terms, read)
        self.holders = [term.holders for term in self._terms]
        """How many texts have each of the terms."""

    @property
    def mass(self) -> float:
        """What all terms are worth."""
        return sum([term.weight for term in self._terms])

    @cached_property
    def _asked(self) -> list[_Asked]:
        terms = sorted(self._terms, key=lambda term: -term.weight)
        found = (_Asked(self._view, number, terms, self._read) for number in range(len(self._view.groups)))
        return [one for one in found if one.rest[0]]

    def best(self, limit: int, allowed: Keys | None = None) -> tuple[Keys, Scores]:
        """The best texts, by score: `limit` of them, and whatever ties with the last.

        `allowed` are the keys that may be found, in order; None is all of them.
        """
        keys, scores, least = np.zeros(0, np.int64), np.zeros(0), 0.0
        for one in self._asked if limit else ():
            places, sums = one.best(limit, least, allowed)
            keys = np.concatenate([keys, one.group.keys[places]])
            scores = np.concatenate([scores, sums])
            least = _least(scores, limit)
        kept = np.flatnonzero(scores >= least)
        kept = kept[np.argsort(-scores[kept], kind="stable")]
        return keys[kept], scores[kept]

    def measure(self, keys: Keys) -> Scores:
        """What each of these texts scores; 0 where it shares no term, or does not exist."""
        found = np.zeros(len(keys))
        for one in self._asked:
            which, places = one.group.places(keys)
            if len(which):
                found[which] = one.measure(places)
        return found

    def holding(self, groups: Sequence[Sequence[int]]) -> tuple[Keys, Mask, Scores]:
        """The texts that hold all terms of a group, of which there is one for each keyword, given by their places.

        Those with most keywords first, then those with the rarer, then by key; the keywords of each, a row for each
        keyword; and what the keywords are worth.
        """
        keys, held = [np.zeros(0, np.int64)], [np.zeros((len(groups), 0), np.bool_)]
        for one in self._asked:
            found = np.array([one.holding([self._terms[term] for term in {*group}]) for group in groups])
            places = np.flatnonzero(found.any(axis=0))
            keys.append(one.group.keys[places])
            held.append(found[:, places])
        every, matrix = np.concatenate(keys), np.concatenate(held, axis=1)
        weights = np.array([self._view.idf(int(number)) for number in matrix.sum(axis=1)])
        order = np.lexsort((every, -(matrix * weights[:, None]).sum(axis=0), -matrix.sum(axis=0)))
        return every[order], matrix[:, order], weights


class _Asked:
    """The terms of a query that a group of segments has, the weightiest first."""

    def __init__(self, view: View, number: int, terms: Sequence[Term], read: ReadLists) -> None:
        self.group: Group = view.groups[number]
        self._number, self._cache, self._read, self._alone = number, view.cache, read, len(view.groups) == 1
        self._terms = [term for term in terms if term.lists[number]]
        self.rest = [0.0]
        """More than what a text can score by the terms from each one on."""
        for term in reversed(self._terms):
            self.rest.insert(0, self.rest[0] + term.weight)

    def best(self, limit: int, least: float, allowed: Keys | None) -> tuple[Places, Scores]:
        """The places and scores of all texts that are among the best `limit` here and score `least`, and of some more.

        Where so many are not known to score something, `least` is 0, and everything is read.
        """
        read = next(at for at, rest in enumerate(self.rest) if rest <= LEFT * least)
        width = max(COLUMNS, 8 * limit)
        sums = np.zeros(-(-self.group.texts // width) * width)
        usable, passing = (None, None) if allowed is None else self.group.passing(allowed)
        for places, scores in self._brought(self._terms[:read], usable):
            np.add.at(sums, places, scores)
        if self.group.gone is not None:
            sums[self.group.gone] = 0.0
        # So many texts, each the best of its column, have the score that the best columns have at least.
        known = sums.reshape(-1, width).max(axis=0) if passing is None else sums[passing]
        border = max(ANY, max(least, _least(known, limit)) - self.rest[read])
        places = np.flatnonzero(sums >= border) if passing is None else passing[known >= border]
        return places, self._completed(sums[places], places, read)

    def measure(self, places: Places) -> Scores:
        """What the texts at some places score."""
        scores = np.zeros(len(places))
        if not self._alone:
            return self._completed(scores, places, 0)
        for held, brought in self._brought(self._terms, None):
            at = held.searchsorted(places)
            scores += brought.take(at, mode="clip") * (held.take(at, mode="clip") == places)
        return scores

    def _completed(self, scores: Scores, places: Places, read: int) -> Scores:
        """What texts score in all that score this much by the terms that were read."""
        terms = self._terms[read:]
        if not terms or not len(places):
            return scores
        counts = np.zeros((len(terms), len(places)))
        of = np.searchsorted(self.group.bases, places, "right") - 1
        mine = {part: np.flatnonzero(of == part) for part in set(of.tolist())}
        slots = {part: (places[at] - self.group.bases[part]).astype(np.uint16) for part, at in mine.items()}
        for row, lists in enumerate(self._lists(terms, mine)):
            for part, one in lists:
                at = one.slots.searchsorted(slots[part])
                held = one.slots.take(at, mode="clip") == slots[part]
                counts[row, mine[part]] = one.counts.take(at, mode="clip") * held
        weights = np.array([term.weight for term in terms])
        norms = np.tile(self.group.norms[places], (len(terms), 1))
        brought = _bm25(counts, norms, weights[:, None])
        # One after the other, as they are summed elsewhere.
        found: Scores = np.cumsum(np.vstack([scores, brought]), axis=0)[-1]
        return found

    def holding(self, terms: Sequence[Term]) -> Mask:
        """Which texts hold all of some terms."""
        held = np.zeros(self.group.texts, np.int64)
        for places, _ in self._brought(terms, None):
            np.add.at(held, places, 1)
        if self.group.gone is not None:
            held[self.group.gone] = 0
        found: Mask = held == len(terms)
        return found

    def _brought(self, terms: Sequence[Term], usable: Mask | None) -> Sequence[tuple[Places, Scores]]:
        """The places of the texts that have some terms, and what those bring them, term after term.

        Held by term where there is one group: of many there would be too much to hold, and of `usable` places alone.
        """
        if not self._alone:
            return [self._scored(terms, self._lists(terms), usable)]
        serial = self.group.serial
        found = self._cache.get([(serial, term.number) for term in terms])
        if missing := [term for term, one in zip(terms, found, strict=True) if one is None]:
            fresh = self._each(missing)
            self._cache.put([((serial, term.number), one) for term, one in zip(missing, fresh, strict=True)])
            left = iter(fresh)
            return [next(left) if one is None else one for one in found]
        return found

    def _each(self, terms: Sequence[Term]) -> list[tuple[Places, Scores]]:
        """The places of the texts that have each term, and what it brings them."""
        lists = self._lists(terms)
        sizes = [sum([len(one.slots) for _, one in row]) for row in lists]
        short = [at for at, size in enumerate(sizes) if size < LONG]
        places, scores = self._scored([terms[at] for at in short], [lists[at] for at in short], None)
        ends = [0, *accumulate([sizes[at] for at in short])]
        # Copies: a part of an array would keep all of it in memory.
        parts = iter([(places[start:end].copy(), scores[start:end].copy()) for start, end in pairwise(ends)])
        return [
            next(parts) if size < LONG else self._scored([term], [row], None)
            for term, row, size in zip(terms, lists, sizes, strict=True)
        ]

    def _scored(
        self, terms: Sequence[Term], lists: Sequence[Sequence[tuple[int, Postings]]], usable: Mask | None
    ) -> tuple[Places, Scores]:
        """The places of the texts in the lists of some terms, and what those bring them, term after term."""
        every = [one for row in lists for one in row]
        if not every:
            return np.zeros(0, np.int64), np.zeros(0)
        sizes = [len(one.slots) for _, one in every]
        places = np.concatenate([one.slots for _, one in every], dtype=np.int64)
        places += np.repeat([self.group.bases[part] for part, _ in every], sizes)
        counts = np.concatenate([one.counts for _, one in every], dtype=np.float64)
        weights: Scores | float = terms[0].weight
        if len(terms) > 1:
            weights = np.repeat([term.weight for term, row in zip(terms, lists, strict=True) for _ in row], sizes)
        if usable is not None:
            kept = np.flatnonzero(usable.take(places))
            places, counts = places[kept], counts[kept]
            weights = weights[kept] if isinstance(weights, np.ndarray) else weights
        return places, _bm25(counts, self.group.norms.take(places), weights)

    def _lists(self, terms: Sequence[Term], parts: Container[int] | None = None) -> list[list[tuple[int, Postings]]]:
        """Of each term its lists in the segments of the group, or in some of them, each with which segment that is.

        They are held where what they bring is not.
        """
        wanted: dict[int, list[tuple[int, Range]]] = {}
        for row, term in enumerate(terms):
            for part, at in term.lists[self._number]:
                if parts is None or part in parts:
                    wanted.setdefault(part, []).append((row, at))
        ordered = sorted(wanted.items())
        asked = [(self.group.parts[part], [at for _, at in mine]) for part, mine in ordered]
        read = iter(self._read(asked, not self._alone))
        found: list[list[tuple[int, Postings]]] = [[] for _ in terms]
        for part, mine in ordered:
            for row, _ in mine:
                found[row].append((part, next(read)))
        return found


def _bm25(counts: Scores, norms: Scores, weights: Scores | float) -> Scores:
    """What terms bring to texts that have them so often, and whose length counts so much against them: in `norms`."""
    norms += counts
    np.divide(counts, norms, out=norms)
    norms *= weights
    return norms


def _least(scores: Scores, limit: int) -> float:
    """The score that the best `limit` have at least; 0 where there are not more."""
    return float(np.partition(scores, -limit)[-limit]) if len(scores) > limit else 0.0
