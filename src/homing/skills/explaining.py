"""From places in a ranking to hits that say why they are there."""

from __future__ import annotations

from collections.abc import Sequence

from homing.skills.hits import SkillHit, Why
from homing.skills.indexing import head_words
from homing.skills.ranking import BODY_MARGIN, Ranked
from homing.skills.skill import Skill, head_text, one_line
from homing.text.tokens import matched_terms

EXCERPT = 200


def hit_of(query: str, skill: Skill, place: Ranked, texts: Sequence[str]) -> SkillHit:
    """The hit at a place; `texts` are the passages that the place points into."""
    return SkillHit(
        id=skill.id,
        name=skill.name,
        description=skill.description,
        tags=skill.tags,
        path=str(skill.metadata.get("path", "")),
        score=place.score,
        cosine=place.cosine,
        why=tuple(_reasons(query, skill, place, texts)),
        metadata=skill.metadata,
    )


def _reasons(query: str, skill: Skill, place: Ranked, texts: Sequence[str]) -> list[Why]:
    reasons = [Why("name", "head", skill.name, 1.0)] if place.named else []
    head, body = place.cosine, place.passage_cosine
    if head is not None and place.passage is not None and body is not None and body - BODY_MARGIN > head:
        reasons.append(Why("vector", "body", one_line(texts[place.passage], EXCERPT), body))
    elif head is not None:
        reasons.append(Why("vector", "head", one_line(head_text(skill), EXCERPT), head))
    if place.shared > 0:
        words = tuple(matched_terms(query, head_words(skill)))
        reasons.append(Why("keyword", "head", one_line(head_text(skill), EXCERPT), place.shared, words))
    if place.wordy is not None and place.passage_shared > place.shared:
        words = tuple(matched_terms(query, texts[place.wordy]))
        reasons.append(Why("keyword", "body", one_line(texts[place.wordy], EXCERPT), place.passage_shared, words))
    return reasons
