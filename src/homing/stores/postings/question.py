"""What texts score by the terms of a query: exact BM25.

Every posting of the terms is read and summed term by term in the order of the query: what a text scores does not depend
on the segment that it lies in. A term brings less than its idf: segments that have too few of the terms are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from homing.stores.postings.index import COUNTED, Group, Mask, Part, ReadLists, Scores, View
from homing.stores.postings.segment import Keys, Terms, numbers_of

COLUMNS = 512
"""Columns that texts are laid out in to see what the best score, at least."""

Places = npt.NDArray[np.int64]


class Question:
    """Terms that are asked of a view: what they are worth, and what texts score by them."""

    def __init__(self, view: View, terms: Sequence[str], read: ReadLists) -> None:
        self._view = view
        numbers = numbers_of(terms)
        asked = (_Asked(group, numbers, read) for group in view.groups)
        self._asked = [one for one in asked if len(one.terms)]
        holders = np.zeros(len(terms), np.int64)
        for one in self._asked:
            one.count(holders)
        self.holders: list[int] = holders.tolist()
        """How many texts have each of the terms."""
        self._weights = np.array([view.idf(number) for number in self.holders])

    @property
    def mass(self) -> float:
        """What all terms are worth."""
        return float(self._weights.sum())

    def best(self, limit: int, allowed: Keys | None = None) -> tuple[Keys, Scores]:
        """The best texts, by score: `limit` of them, and whatever ties with the last.

        `allowed` are the keys that may be found, in order; None is all of them.
        """
        keys, scores, least = np.zeros(0, np.int64), np.zeros(0), 0.0
        for one in self._asked if limit else ():
            if one.worth(self._weights) > least:
                sums = one.summed(self._weights, allowed)
                border = least or _reached(sums, limit)
                places = np.flatnonzero(sums >= border if border > 0 else sums)
                keys = np.concatenate([keys, one.group.keys[places]])
                scores = np.concatenate([scores, sums[places]])
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
                found[which] = one.measured(self._weights, places)
        return found

    def holding(self, groups: Sequence[Sequence[int]]) -> tuple[Keys, Mask, Scores]:
        """The texts that hold all terms of a group, of which there is one for each keyword, given by their places.

        Those with most keywords first, then those with the rarer, then by key; the keywords of each, a row for each
        keyword; and what the keywords are worth.
        """
        keys, held = [np.zeros(0, np.int64)], [np.zeros((len(groups), 0), np.bool_)]
        for one in self._asked:
            found = np.array([one.holding(group) for group in groups])
            places = np.flatnonzero(found.any(axis=0))
            keys.append(one.group.keys[places])
            held.append(found[:, places])
        every, matrix = np.concatenate(keys), np.concatenate(held, axis=1)
        weights = np.array([self._view.idf(int(number)) for number in matrix.sum(axis=1)])
        order = np.lexsort((every, -(matrix * weights[:, None]).sum(axis=0), -matrix.sum(axis=0)))
        return every[order], matrix[:, order], weights


class _Asked:
    """The lists of a query's terms in a group of segments: of which term each is, and how long.

    Segment after segment, and in the order of the query in each: so each text meets its terms in that order.
    """

    def __init__(self, group: Group, numbers: Terms, read: ReadLists) -> None:
        self.group = group
        self._read = read
        found = [_places(part, numbers) for part in group.parts]
        self._at = [at for at, _, _ in found]
        self._places: list[list[int]] = [places.tolist() for _, places, _ in found]
        self.terms = np.concatenate(self._at)
        self.sizes = np.concatenate([sizes for _, _, sizes in found])

    def count(self, holders: npt.NDArray[np.int64]) -> None:
        """Add how many texts have each term."""
        np.add.at(holders, self.terms, self.sizes)
        for part, at, places in zip(self.group.parts, self._at, self._places, strict=True):
            if part.gone is not None and places:
                holders[at] -= self._removed(part, part.gone, places)

    def _removed(self, part: Part, gone: Mask, places: list[int]) -> list[int]:
        known = part.removals
        missing = [place for place in places if place not in known]
        if missing:
            if len(known) + len(missing) > COUNTED:
                known.clear()
                missing = places
            for place, postings in zip(missing, self._read(part, missing), strict=True):
                known[place] = int(np.count_nonzero(gone.take(postings.slots)))
        return [known[place] for place in places]

    def worth(self, weights: Scores) -> float:
        """More than what any text scores."""
        return float(weights[list(set(self.terms.tolist()))].sum())

    @cached_property
    def _postings(self) -> tuple[Places, Scores]:
        """Where the texts are that have the terms, and how often they have them, list after list."""
        read = zip(self.group.parts, self._places, strict=True)
        lists = [self._read(part, places) if places else [] for part, places in read]
        found = np.concatenate([one.slots for one in chain.from_iterable(lists)]).astype(np.int64)
        end = 0
        for base, mine in zip(self.group.bases, lists, strict=False):
            start, end = end, end + sum([len(one.slots) for one in mine])
            if base:
                found[start:end] += base
        return found, np.concatenate([one.counts for one in chain.from_iterable(lists)]).astype(np.float64)

    def summed(self, weights: Scores, allowed: Keys | None) -> Scores:
        """What every text scores, by place."""
        places, counts = self._postings
        each = np.repeat(weights[self.terms], self.sizes)
        if allowed is not None:
            kept = np.flatnonzero(self.group.passing(allowed).take(places))
            places, counts, each = places[kept], counts[kept], each[kept]
        sums = _bm25(places, counts, each, self.group.norms.take(places), self.group.texts)
        if self.group.gone is not None:
            sums[self.group.gone] = 0.0
        return sums

    def measured(self, weights: Scores, places: Places) -> Scores:
        """The same for some texts, removed or not."""
        rows = np.full(self.group.texts, -1, np.int64)
        rows[places] = np.arange(len(places))
        every, counts = self._postings
        row = rows.take(every)
        mine = np.flatnonzero(row >= 0)
        row = row[mine]
        each = weights[self.terms[np.searchsorted(np.cumsum(self.sizes), mine, "right")]]
        return _bm25(row, counts[mine], each, self.group.norms[places][row], len(places))

    def holding(self, terms: Sequence[int]) -> Mask:
        """Which texts hold all of some terms."""
        wanted = np.isin(self.terms, terms)
        places = self._postings[0][np.repeat(wanted, self.sizes)]
        found: Mask = np.bincount(places, minlength=self.group.texts) == len(set(terms))
        if self.group.gone is not None:
            found[self.group.gone] = False
        return found


def _bm25(rows: Places, counts: Scores, weights: Scores, norms: Scores, texts: int) -> Scores:
    """What so many texts score by postings: of which text each is, how often, and what the term is worth."""
    norms += counts
    np.divide(counts, norms, out=norms)
    norms *= weights
    return np.bincount(rows, norms, texts).astype(np.float64, copy=False)


def _places(part: Part, numbers: Terms) -> tuple[Places, Places, Places]:
    """Which of some terms a segment has, where they stand in its header, and how many texts have each."""
    held, starts = part.header.terms, part.header.starts
    places = held.searchsorted(numbers)
    if len(held):
        places[places == len(held)] = 0
        at = np.flatnonzero(held[places] == numbers)
    else:
        at = np.zeros(0, np.int64)
    places = places[at]
    return at, places, (starts[places + 1] - starts[places]).astype(np.int64)


def _least(scores: Scores, limit: int) -> float:
    """The score that the best `limit` have at least; 0 where there are not more."""
    return float(np.partition(scores, -limit)[-limit]) if len(scores) > limit else 0.0


def _reached(scores: Scores, limit: int) -> float:
    """A score that `limit` texts reach, if so many have one: quicker found than the last of the best."""
    width = max(COLUMNS, 8 * limit)
    height = len(scores) // width
    if height < 2:
        return _least(scores, limit)
    # So many texts, each the best of its column, have the score that the best columns have at least.
    return _least(scores[: height * width].reshape(height, width).max(axis=0), limit)
