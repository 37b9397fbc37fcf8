"""What the legs found, made into the page of hits that is shown."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from homing.engine.fusion import Ranking, rrf
from homing.engine.measuring import measured
from homing.engine.ranking import rank
from homing.engine.source import Nearest, Source
from homing.records import Hit, Leg, LegShare, Mode
from homing.stores.store import Measured, Words
from homing.vectors import score_of

if TYPE_CHECKING:
    from homing.engine.search import HybridOptions


@dataclass(frozen=True, slots=True)
class _Place:
    """A hit before it is read: its id, what orders it, and what each leg brought to that."""

    id: str
    fused: float
    cosine: float | None
    similarity: float
    shares: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Answer:
    """What each leg found in a source; None of one that failed or was not asked."""

    source: Source
    options: HybridOptions
    nearest: Nearest | None
    words: Words | None
    timings: dict[str, float] = field(default_factory=lambda: {"similarity_ms": 0.0})
    """Milliseconds that the other leg was asked for what only one found."""

    @property
    def mode(self) -> Mode:
        """Which legs answered."""
        if self.nearest is None:
            return "keyword"
        return "hybrid" if self.words is not None and self.options.mode == "hybrid" else "semantic"

    def hits(self) -> tuple[Hit, ...]:
        """The page that is shown, read at once."""
        match self.mode:
            case _ if self.options.fusion == "rrf" and self.options.mode == "hybrid":
                places = self._by_places()
            case "keyword":
                places = self._by_words()
            case "semantic":
                places = self._by_meaning()
            case "hybrid":
                places = self._by_evidence()
        page = places[: self.options.limit]
        records = self.source.read([one.id for one in page])
        ranks, waiting = self._ranks(), self.source.waiting([one.id for one in page if one.cosine is None])
        return tuple(
            Hit(
                id=place.id,
                collection=self.source.collection,
                text=records[place.id].text,
                metadata=records[place.id].metadata,
                score=None if place.cosine is None else self._score(place.similarity),
                cosine=place.cosine,
                fused=place.fused,
                legs=tuple(self._legs(place, ranks)),
                keywords=self.source.matched(records[place.id]) if place.id in ranks["keyword"] else (),
                pending=place.id in waiting,
            )
            for place in page
            if place.id in records
        )

    def _by_words(self) -> list[_Place]:
        """By how much of the query each covers, which means the same in every collection."""
        assert self.words is not None
        found = [Measured(one.id, None, one.bm25) for one in self.words.found]
        return [
            _Place(one.id, one.similarity, None, 0.0, {"keyword": one.similarity}) for one in rank(found, self.words)
        ]

    def _by_meaning(self) -> list[_Place]:
        """The nearest, and behind them what shares words and has no vector yet."""
        assert self.nearest is not None
        near = sorted(self.nearest.cosines.items(), key=lambda one: (-one[1], one[0]))
        places = [_Place(name, cosine, cosine, cosine, {"vector": cosine}) for name, cosine in near]
        if len(places) >= self.options.limit or self.words is None:
            return places
        waiting = [one for one in self._measured([one.id for one in self.words.found]) if one.cosine is None]
        return places + [_Place(one.id, 0.0, None, 0.0, {"keyword": one.bm25}) for one in waiting]

    def _by_evidence(self) -> list[_Place]:
        assert self.nearest is not None
        assert self.words is not None
        found = dict.fromkeys([*self.nearest.cosines, *(one.id for one in self.words.found)])
        return [
            _Place(
                one.id,
                one.similarity,
                one.cosine,
                one.similarity,
                {"vector": one.cosine or 0.0, "keyword": one.by_words},
            )
            for one in rank(self._measured(found), self.words)
        ]

    def _by_places(self) -> list[_Place]:
        options, ranks = self.options, self._ranks()
        rankings = [
            Ranking("vector", list(ranks["vector"]), options.vector_weight),
            Ranking("keyword", list(ranks["keyword"]), options.keyword_weight),
        ]
        fused = rrf(rankings, k=options.rrf_k)[: options.limit]
        cosines: dict[str, float | None] = {}
        if self.nearest is not None:
            cosines |= self.nearest.cosines
            missing = [one.id for one in fused if one.id not in cosines]
            cosines |= {one.id: one.cosine for one in self._measured(missing)}
        return [_Place(one.id, one.score, cosines.get(one.id), cosines.get(one.id) or 0.0, one.shares) for one in fused]

    def _measured(self, ids: Iterable[str]) -> list[Measured]:
        """These as both legs see them."""
        started = time.perf_counter()
        found = measured(self.source, ids, self.nearest, self.words, self.options.leg_limit)
        self.timings["similarity_ms"] += (time.perf_counter() - started) * 1000
        return found

    def _score(self, similarity: float) -> float:
        return score_of(similarity, None if self.nearest is None else self.nearest.scale)

    def _ranks(self) -> dict[Leg, dict[str, tuple[int, float]]]:
        """Where each leg saw what it found, and its raw measure."""
        near = {} if self.nearest is None else self.nearest.cosines
        words = () if self.words is None else self.words.found
        by_cosine = sorted(near.items(), key=lambda one: (-one[1], one[0]))
        return {
            "vector": {name: (at, cosine) for at, (name, cosine) in enumerate(by_cosine, start=1)},
            "keyword": {one.id: (at, one.bm25) for at, one in enumerate(words, start=1)},
        }

    def _legs(self, place: _Place, ranks: Mapping[Leg, Mapping[str, tuple[int, float]]]) -> Iterator[LegShare]:
        weights: dict[Leg, float] = {"vector": self.options.vector_weight, "keyword": self.options.keyword_weight}
        for leg, seen in ranks.items():
            if place.id in seen and leg in place.shares:
                at, raw = seen[place.id]
                yield LegShare(leg, at, raw, weights[leg], place.shares[leg])
