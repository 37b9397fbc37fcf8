"""One query put to one user's rows: a method per leg, and how their answers become one."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from functools import cached_property

from homing.engine.fusion import Fused, Ranking, rrf
from homing.errors import Timeout
from homing.langchain import journal
from homing.langchain.files import capped, file_name, grouped
from homing.langchain.options import HybridRetrieverOptions
from homing.langchain.source import Asked, Found, Source, Words
from homing.langchain.tracing import in_this_context, span
from homing.legs import run_leg
from homing.records import Hit, Leg, LegShare
from homing.text.keywords import extract_keywords
from homing.vectors import score_of

DEEPEST = 2_000
"""Matches of one leg beyond which nobody looks for a file that has not had its turn."""

log = logging.getLogger(__name__)


class Question:
    """A query with all that answering it takes. The two legs may be asked at the same time."""

    def __init__(self, query: str, source: Source, options: HybridRetrieverOptions, user_id: int | str) -> None:
        self.query = query
        self.source = source
        self.options = options
        self.user_id = user_id
        self.depth = options.depth
        self.asked: Asked | None = None
        self.similarity_ms = 0.0
        self._ends = time.monotonic() + options.deadline
        self._full: dict[Leg, bool] = {}

    @cached_property
    def keywords(self) -> list[str]:
        """At most ten words that stand for the query."""
        return extract_keywords(self.query)

    def vector(self) -> list[Found]:
        """The nearest rows whose similarity reaches the threshold."""
        with span("homing.vector_search") as noted:
            asked = self.asked = self.asked or self.source.ask(self.query)
            if time.monotonic() > self._ends:
                # Nobody waits for this leg any more; the server need not work for it.
                raise Timeout(f"the query was embedded after the deadline of {self.options.deadline:g} s")
            options = self.options
            found = self.source.nearest(asked, self.depth, options.filter, deadline=self.left)
            self._full["vector"] = len(found) >= self.depth
            near = [
                one
                for one in found
                if one.cosine is not None and score_of(one.cosine, asked.scale) >= options.min_similarity
            ]
            noted.set_attribute("homing.results", len(near))
            return near

    def keyword(self) -> list[Found]:
        """The rows with the keywords, in the order that was asked for; none where the query has no keywords."""
        with span("homing.keyword_search") as noted:
            if not self.keywords:
                journal.no_keywords(self.options, self.query, self.user_id)
                return []
            options = self.options
            words = Words(self.query, self.keywords, by_relevance=options.keyword_ranking == "relevance")
            found = self.source.matching(words, self.depth, options.filter, deadline=self.left)
            self._full["keyword"] = len(found) >= self.depth
            noted.set_attribute("homing.results", len(found))
            return found

    @property
    def left(self) -> float:
        """Seconds until the deadline; a moment where it has passed, so that nothing waits for ever."""
        return max(0.05, self._ends - time.monotonic())

    def deepen(self) -> bool:
        """Whether the legs have more to give; if so they give it when they are asked again."""
        if self.depth >= DEEPEST or not any(self._full.values()):
            return False
        self.depth = min(DEEPEST, self.depth * 4)
        return True


def fused(question: Question, answers: Mapping[Leg, Sequence[Found]]) -> tuple[Hit, ...]:
    """The rows of both legs as hits, best first, `limit` of them, each explained."""
    options = question.options
    weights: dict[Leg, float] = {"vector": options.vector_weight, "keyword": options.keyword_weight}
    rows = {leg: {one.id: one for one in found} for leg, found in answers.items()}
    ranked = rrf([Ranking(leg, list(found), weights[leg]) for leg, found in rows.items()], k=options.rrf_k)

    def file_of(one: Fused) -> str | None:
        return file_name(next(found[one.id] for found in rows.values() if one.id in found).metadata)

    best = capped(ranked, options.max_per_file, file_of)[: options.limit]
    if options.group_by_file:
        best = grouped(best, file_of)
    cosines = _cosines(question, rows, [one.id for one in best])
    scale = question.asked.scale if question.asked is not None else None
    hits = []
    for one in best:
        found: dict[Leg, Found] = {leg: by_id[one.id] for leg, by_id in rows.items() if one.id in by_id}
        row = next(iter(found.values()))
        cosine = cosines.get(one.id)
        hits.append(
            Hit(
                id=one.id,
                collection=question.source.collection,
                text=row.text,
                metadata=row.metadata,
                score=None if cosine is None else score_of(cosine, scale),
                cosine=cosine,
                fused=one.score,
                legs=tuple(
                    LegShare(leg, one.ranks[leg], _raw(seen), weights[leg], one.shares[leg])
                    for leg, seen in found.items()
                ),
                keywords=found["keyword"].matched if "keyword" in found else (),
            )
        )
    return tuple(hits)


def _raw(found: Found) -> float:
    return found.cosine if found.cosine is not None else found.count


def _cosines(question: Question, rows: Mapping[Leg, Mapping[str, Found]], ids: Sequence[str]) -> dict[str, float]:
    """The cosine of every hit, also of those that only keywords found: people compare hits by one number."""
    known = {one.id: one.cosine for one in rows.get("vector", {}).values() if one.cosine is not None}
    missing = [one for one in ids if one not in known]
    asked = question.asked
    if asked is None or "vector" not in rows or not missing:
        return known
    look = in_this_context(lambda: question.source.cosines(asked, missing, deadline=question.left))
    outcome = run_leg("similarity", look, deadline=question.left)
    question.similarity_ms = outcome.milliseconds
    if outcome.value is None:
        log.warning("cannot read the vectors of %d keyword hits: %s", len(missing), outcome.error)
        return known
    return known | dict(outcome.value)
