"""One search for things that have several texts: a skill is its description and the passages of its body.

Each kind of text is a collection of its own, so that the words of long passages and of short descriptions are weighed
among their like. What a thing is near to is its nearest text, and the words that count are those of the text that
shares most with the query; the formula is that of every other search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from homing.embedders.provider import EmbeddingProvider
from homing.engine.ranking import confidence, similarity, worth
from homing.engine.search import HybridOptions, OnFailure, check_answered, concluded, log_failure
from homing.engine.source import EmbedOnce, ModelsInUse, Nearest, StoreSource, as_models, measured
from homing.legs import Outcome, run_legs
from homing.records import Leg, Mode, Retrieved
from homing.stores.store import Measured, Store, Words
from homing.vectors import Scale


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of text. `group` says whose text an id is; the first part of a search has the ids of the things
    themselves. `margin` is how much nearer than the others such a text must be to count in their place."""

    collection: str
    group: Callable[[str], str] = str
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class Share:
    """What one kind of text says for a thing: its nearest text, and the one that shares most with the query."""

    nearest: str | None = None
    cosine: float | None = None
    worded: str | None = None
    evidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Group:
    """A thing with its similarity, and what each part says for it; without any vector, the share of the query that its
    words cover."""

    id: str
    similarity: float
    cosine: float | None
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Grouped:
    """The things that a query is about, the nearest first.

    `outcome` says how the legs fared and how likely the first is right, and has no hits; `words` are those that were
    found among the first part.
    """

    groups: tuple[Group, ...]
    outcome: Retrieved
    scale: Scale | None
    words: Words


def search_groups(
    query: str,
    parts: Sequence[Part],
    *,
    store: Store,
    embedder: EmbeddingProvider | ModelsInUse | None,
    options: HybridOptions,
    also: Sequence[str] = (),
    on_failure: OnFailure = log_failure,
) -> Grouped:
    """The things whose texts a query is about, by both legs; those in `also` are measured whatever the legs found.

    As with `search`, words answer alone where there is no model or it fails. Raises RetrievalFailed where no leg could.
    """
    started = time.perf_counter()
    models = EmbedOnce(as_models(embedder))
    sources = [StoreSource(query, part.collection, store, models) for part in parts]
    outcomes = _ask(sources, options)
    check_answered(outcomes)
    nearest: list[Nearest] | None = outcomes["vector"].value if "vector" in outcomes else None
    words: list[Words] | None = outcomes["keyword"].value
    found = [
        _Found(
            part,
            source,
            None if nearest is None else nearest[at],
            None if words is None else words[at],
            options.leg_limit,
        )
        for at, (part, source) in enumerate(zip(parts, sources, strict=True))
    ]
    mode: Mode = "keyword" if nearest is None else "semantic" if words is None else "hybrid"
    groups = _groups(found, also)
    scale = next((one.scale for one in nearest or () if one.vector is not None), None)
    near = [(one.similarity, one.cosine) for one in groups]
    sure = confidence(query, near, words[0], scale) if mode == "hybrid" and words is not None else None
    answered = Retrieved((), mode, corrected=_corrected(words or ()), confidence=sure)
    outcome = concluded(answered, outcomes, started, on_failure)
    return Grouped(groups, outcome, scale, Words() if words is None else words[0])


def _corrected(words: Sequence[Words]) -> dict[str, str]:
    """What no part holds, and what it was read as in the first that holds another spelling."""
    known = [one.corrected for one in words if one.texts]
    every = {word: spelling for one in reversed(known) for word, spelling in one.items()}
    return {word: spelling for word, spelling in every.items() if all(word in one for one in known)}


def _ask(sources: Sequence[StoreSource], options: HybridOptions) -> dict[Leg, Outcome[Any]]:
    legs: dict[str, Callable[[], Any]] = {"keyword": lambda: [one.words(options.leg_limit) for one in sources]}
    if sources[0].embeds:
        legs["vector"] = lambda: [one.nearest(options.leg_limit) for one in sources]
    outcomes = run_legs(legs, deadline=options.deadline, waits=any(one.waits for one in sources))
    order: tuple[Leg, ...] = ("vector", "keyword")
    return {leg: outcomes[leg] for leg in order if leg in outcomes}


@dataclass(frozen=True, slots=True)
class _Found:
    """What the legs found in one part."""

    part: Part
    source: StoreSource
    nearest: Nearest | None
    words: Words | None
    limit: int

    @property
    def ids(self) -> dict[str, None]:
        """Each id once."""
        near = {} if self.nearest is None else self.nearest.cosines
        return dict.fromkeys([*near, *(one.id for one in (() if self.words is None else self.words.found))])

    def shares(self, ids: Iterable[str]) -> dict[str, tuple[Share, float]]:
        """What these say for each thing, and how much of the query the best of them covers."""
        by_thing: dict[str, list[Measured]] = {}
        for one in sorted(measured(self.source, ids, self.nearest, self.words, self.limit), key=lambda one: one.id):
            by_thing.setdefault(self.part.group(one.id), []).append(one)
        return {name: self._share(texts) for name, texts in by_thing.items()}

    def _share(self, texts: Sequence[Measured]) -> tuple[Share, float]:
        near = max((one for one in texts if one.cosine is not None), key=lambda one: one.cosine or 0.0, default=None)
        worded = max(texts, key=lambda one: one.bm25)
        evidence, coverage = worth(worded.bm25, self.words or Words())
        nearest, cosine = (None, None) if near is None else (near.id, near.cosine)
        if not evidence > 0:
            return Share(nearest, cosine), 0.0
        return Share(nearest, cosine, worded.id, evidence), coverage


def _groups(found: Sequence[_Found], also: Sequence[str]) -> tuple[Group, ...]:
    first, *others = found
    shares = [one.shares(one.ids) for one in others]
    named = dict.fromkeys([*also, *(name for one in shares for name in one)])
    # What the first part does not know is gone.
    heads = first.shares({**first.ids, **named})
    margins, made, nothing = [one.part.margin for one in found], [], (Share(), 0.0)
    for name, head in heads.items():
        each, covered = zip(head, *[one.get(name, nothing) for one in shares], strict=True)
        cosines = [one.cosine - margin for one, margin in zip(each, margins, strict=True) if one.cosine is not None]
        cosine = max(cosines, default=None)
        near = similarity(cosine, max([one.evidence for one in each]), max(covered))
        made.append(Group(name, near, cosine, each))
    return tuple(sorted(made, key=lambda one: (-one.similarity, one.id)))
