"""From a request to the skills that fit it, and why.

What a skill is near to is the nearer of its head and its best passage, the passage a little less; the engine's ranking
does the rest: the score is the probability that the skill fits. An exact name is 1.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from homing.engine.grouping import Group, Grouped, Part, Share, search_groups
from homing.engine.ranking import MIN_SCORE, is_silent, score
from homing.engine.search import HybridOptions
from homing.errors import InvalidArgument
from homing.records import Found, Leg, Metadata, Notice, VectorRecord
from homing.skills.index import HEADS, PASSAGES, SkillIndex, head_words, owner_of, skill_of
from homing.skills.skill import Skill, head_text, one_line
from homing.stores.arguments import checked_limit
from homing.text.tokens import matched_terms

log = logging.getLogger(__name__)

BODY_MARGIN = 0.05
"""How much nearer a passage of the body must be than the head to count in its place."""
SAME_COSINE = 0.985
"""Cosine of two heads from which on they say the same; equal descriptions do in any case."""
MAX_SAME_SHARE = 0.4
"""The share of an answer that skills which say the same may take while there are others."""
MIN_DEPTH = 20
"""Texts that each leg brings at least."""
EXCERPT = 200
DEADLINE = 5.0
"""Seconds that an answer waits for the model and the store."""

PARTS = (Part(HEADS), Part(PASSAGES, owner_of, BODY_MARGIN))


def find(
    index: SkillIndex,
    query: str,
    limit: int,
    threshold: float | None,
    *,
    cut: bool = False,
    deadline: float = DEADLINE,
) -> FoundSkills:
    """The skills that fit, the best first, at most `limit`, none below the threshold.

    `cut` leaves out what every search does by default: weak hits, and all of them where the first is not likely right.
    """
    checked_limit(limit)
    if not isinstance(query, str) or not query.strip():
        raise InvalidArgument("the query is empty; say what is to be done")
    named = index.called(query)
    found = search_groups(
        query,
        PARTS,
        store=index.store,
        embedder=index.engine.models,
        options=HybridOptions(limit=limit, depth=max(MIN_DEPTH, 2 * limit), deadline=deadline),
        also=named,
        on_failure=_warn,
    )
    places = _places(index, found, set(named), limit) if limit else []
    outcome = found.outcome
    sure = 1.0 if named and places else outcome.confidence
    cut = cut and sure is not None
    least = max(threshold or 0.0, MIN_SCORE) if cut else threshold
    silent = cut and is_silent(sure)
    fitting = [place for place in places if (least is None or place.score >= least) and not silent]
    bodies = [one for place in fitting for one in (place.body.nearest, place.body.worded) if one is not None]
    shown = list(dict.fromkeys(bodies))
    texts = {one.id: one.text for one in index.store.get(PASSAGES, shown, embeddings=False)} if shown else {}
    hits = tuple(_hit(query, place, texts) for place in fitting)
    return FoundSkills(
        hits,
        outcome.mode,
        degraded=outcome.degraded,
        reason=outcome.reason,
        notice=_degraded(found) or _empty(index, hits, places, threshold),
        timings=outcome.timings,
        corrected=outcome.corrected,
        confidence=sure,
        left_out=len(places) - len(fitting) if cut else 0,
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """A skill's place in an answer, with its score and what speaks for it."""

    skill: Skill
    score: float
    head: Share
    body: Share
    named: bool


def _places(index: SkillIndex, found: Grouped, named: set[str], limit: int) -> list[_Place]:
    order = sorted(
        (one for one in found.groups if one.id in named or one.similarity > 0 or found.outcome.mode != "keyword"),
        key=lambda one: (one.id not in named, -one.similarity, one.id),
    )
    scale = found.scale if found.outcome.mode != "keyword" else None
    # As many as near-duplicates may push aside, and some that may be gone by now; mostly twice the page is enough.
    for count in (2 * limit, 4 * limit + 10):
        # Where all have room, none are pushed aside.
        read = index.heads([one.id for one in order[:count]], embeddings=len(order) > limit)
        heads = {one.id: one for one in read}
        chosen, is_full = _varied([one for one in order if one.id in heads], heads, limit)
        if is_full or len(order) <= count:
            break
    return [
        _Place(
            skill_of(heads[one.id]),
            1.0 if one.id in named else max(0.0, min(1.0, score(one.similarity, scale, found.words))),
            one.shares[0],
            one.shares[1],
            one.id in named,
        )
        for one in chosen
    ]


def _varied(order: Sequence[Group], heads: Mapping[str, VectorRecord], limit: int) -> tuple[list[Group], bool]:
    """The first `limit`, of which not too many say the same; where there is room, others after all. And whether there
    is none."""
    most = max(1, round(MAX_SAME_SHARE * limit))
    chosen: list[Group] = []
    crowded: list[Group] = []
    for one in order:
        if len(chosen) == limit:
            break
        same = sum(_say_the_same(heads[one.id], heads[other.id]) for other in chosen)
        (crowded if same >= most else chosen).append(one)
    kept = {one.id for one in chosen + crowded[: limit - len(chosen)]}
    return [one for one in order if one.id in kept], len(chosen) == limit


def _say_the_same(one: VectorRecord, other: VectorRecord) -> bool:
    described = one.metadata["description"]
    if described and described == other.metadata["description"]:
        return True
    if one.embedding is None or other.embedding is None:
        return False
    return float(one.embedding @ other.embedding) >= SAME_COSINE


def _hit(query: str, place: _Place, texts: Mapping[str, str]) -> SkillHit:
    skill = place.skill
    return SkillHit(
        id=skill.id,
        name=skill.name,
        description=skill.description,
        tags=skill.tags,
        path=str(skill.metadata.get("path", "")),
        score=place.score,
        cosine=place.head.cosine,
        why=tuple(_reasons(query, place, texts)),
        metadata=skill.metadata,
    )


def _reasons(query: str, place: _Place, texts: Mapping[str, str]) -> Iterator[Why]:
    skill, head, body = place.skill, place.head, place.body
    said = one_line(head_text(skill), EXCERPT)
    if place.named:
        yield Why("name", "head", skill.name, 1.0)
    if body.cosine is not None and (head.cosine is None or body.cosine - BODY_MARGIN > head.cosine):
        yield Why("vector", "body", one_line(texts.get(body.nearest or "", ""), EXCERPT), body.cosine)
    elif head.cosine is not None:
        yield Why("vector", "head", said, head.cosine)
    if head.evidence > 0:
        yield Why("keyword", "head", said, head.evidence, tuple(matched_terms(query, head_words(skill))))
    if body.evidence > head.evidence:
        text = texts.get(body.worded or "", "")
        yield Why("keyword", "body", one_line(text, EXCERPT), body.evidence, tuple(matched_terms(query, text)))


def _warn(leg: Leg, error: Exception) -> None:
    if leg == "vector":
        log.warning("embedding model is not available, answering by keywords: %s", error)
    else:
        log.warning("the keyword index is not available, answering by meaning: %s", error)


def _degraded(found: Grouped) -> Notice | None:
    reason = found.outcome.reason or ""
    if not reason.startswith("vector:"):
        return found.outcome.notice
    code = reason.removeprefix("vector:")
    return Notice(
        f"嵌入模型不可用，已改用关键词匹配（{code}）",
        f"The embedding model is not available; matched by keywords ({code})",
    )


def _empty(
    index: SkillIndex, hits: Sequence[SkillHit], places: Sequence[_Place], threshold: float | None
) -> Notice | None:
    if hits:
        return None
    if not index.size():
        return Notice("还没有索引任何技能，请先扫描技能目录", "No skill is indexed yet; scan a folder of skills first")
    if threshold is None or not places:
        return Notice("没有匹配的技能", "No skill matches")
    return Notice(
        f"没有技能达到阈值 {threshold:g}，最接近的为 {places[0].score:.2f}",
        f"No skill reaches the threshold {threshold:g}; the nearest has {places[0].score:.2f}",
    )


@dataclass(frozen=True, slots=True)
class Why:
    """One reason for a hit: which leg found it, in which part of the skill, and the text that matched.

    `value` is the cosine of the vector leg, and for keywords how many rare words the text shares with the query.
    """

    leg: Literal["vector", "keyword", "name"]
    part: Literal["head", "body"]
    text: str
    value: float
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillHit:
    """A skill that fits. `score` is in [0, 1] and orders the hits; `cosine` is that of its head, where there is one."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    path: str
    score: float
    cosine: float | None
    why: tuple[Why, ...]
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class FoundSkills(Found[SkillHit]):
    """The skills that fit, the highest score first. `notice` also says when nothing reached the threshold."""
