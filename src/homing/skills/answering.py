"""A question put to what is indexed, and the answer that explains itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homing.errors import HomingError, InvalidArgument
from homing.records import Notice
from homing.skills.explaining import hit_of
from homing.skills.hits import FoundSkills, SkillHit
from homing.skills.ranking import Ranker
from homing.skills.skill_rows import Contents
from homing.stores.arguments import checked_limit
from homing.vectors import Scale, Vector


@dataclass(frozen=True, slots=True)
class Question:
    """A query, its vector, how that model's cosines read, and why there is no vector, if it should have one."""

    query: str
    vector: Vector | None
    scale: Scale | None
    failure: HomingError | None = None


def check_question(query: object, limit: object) -> None:
    """Refuses what cannot be asked."""
    checked_limit(limit)
    if not isinstance(query, str) or not query.strip():
        raise InvalidArgument("the query is empty; say what is to be done")


def answer(
    question: Question, contents: Contents, ranker: Ranker, *, limit: int, threshold: float | None
) -> FoundSkills:
    """The skills that fit, the best first, at most `limit`, none below the threshold."""
    query, vector, failure = question.query, question.vector, question.failure
    places = ranker.rank(query, vector, question.scale, limit) if limit else []
    fitting = [place for place in places if threshold is None or place.score >= threshold]
    hits = tuple(hit_of(query, contents.skills[place.position], place, contents.texts) for place in fitting)
    return FoundSkills(
        hits,
        "keyword" if vector is None else "hybrid",
        degraded=failure is not None,
        reason=None if failure is None else f"vector:{failure.code}",
        notice=_notice(failure) or _empty(contents, hits, places[0].score if places else None, threshold),
    )


def ranker_of(contents: Contents) -> Ranker:
    """What is indexed, ready to be asked."""
    return Ranker(
        [skill.name for skill in contents.skills],
        [skill.description for skill in contents.skills],
        contents.head_terms,
        contents.passage_terms,
        contents.vectors,
        contents.owners,
    )


def _notice(failure: HomingError | None) -> Notice | None:
    if failure is None:
        return None
    return Notice(
        f"嵌入模型不可用，已改用关键词匹配（{failure.code}）",
        f"The embedding model is not available; matched by keywords ({failure.code})",
    )


def _empty(contents: Contents, hits: Sequence[SkillHit], best: float | None, threshold: float | None) -> Notice | None:
    if hits:
        return None
    if not contents.skills:
        return Notice("还没有索引任何技能，请先扫描技能目录", "No skill is indexed yet; scan a folder of skills first")
    if threshold is None or best is None:
        return Notice("没有匹配的技能", "No skill matches")
    return Notice(
        f"没有技能达到阈值 {threshold:g}，最接近的为 {best:.2f}",
        f"No skill reaches the threshold {threshold:g}; the nearest has {best:.2f}",
    )
