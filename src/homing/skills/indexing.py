"""From skills to rows: cut the bodies, embed everything in one go, count the words."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import replace

from homing.embedders.provider import EmbeddingProvider
from homing.errors import EmbeddingError
from homing.skills.skill import Skill, head_text
from homing.skills.skill_rows import Passage, SkillRow
from homing.skills.terms import terms_of
from homing.text.paragraphs import Paragraph, paragraphs
from homing.vectors import Matrix

log = logging.getLogger(__name__)

MOST_CHARACTERS = 60_000
"""How much of a body is searched: its beginning, some thirty pages."""
MOST_PASSAGES = 24
SHORTEST = 400
"""Characters below which a paragraph is joined with the next: a passage says enough to be recognised by."""


def passages_of(body: str) -> list[str]:
    """The passages of a body, in order. A long one is cut after `MOST_CHARACTERS` and `MOST_PASSAGES`."""
    found: list[str] = []
    gathered = ""
    for paragraph in _paragraphs(body[:MOST_CHARACTERS]):
        gathered = f"{gathered}\n\n{paragraph.text}" if gathered else paragraph.text
        if len(gathered) >= SHORTEST:
            found.append(gathered)
            gathered = ""
            if len(found) == MOST_PASSAGES:
                return found
    return [*found, gathered] if gathered else found


def _paragraphs(body: str) -> list[Paragraph]:
    return paragraphs(body) if body.strip() else []


def content_of(skill: Skill) -> str:
    """Names what a skill says, for one that has no file."""
    said = json.dumps([skill.name, skill.description, skill.tags, skill.body])
    return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()


def rows_for(skills: Sequence[Skill], contents: Sequence[str], embedder: EmbeddingProvider | None) -> list[SkillRow]:
    """The rows of skills, embedded together. Where the model fails they have no vectors: a warning says so."""
    texts: list[str] = []
    cut = [passages_of(skill.body) for skill in skills]
    for skill, body in zip(skills, cut, strict=True):
        texts += [head_text(skill), *body]
    vectors = embedded(texts, embedder)
    rows = []
    start = 0
    for skill, content, body in zip(skills, contents, cut, strict=True):
        passages = [
            Passage(text, terms_of(text), None if vectors is None else vectors[start + at])
            for at, text in enumerate([head_words(skill), *body])
        ]
        rows.append(SkillRow(replace(skill, body=""), content, passages[0], tuple(passages[1:])))
        start += len(passages)
    return rows


def head_words(skill: Skill) -> str:
    """What the keyword leg reads of a head: the name as it is written, too."""
    return f"{skill.name}\n{skill.description}\n{' '.join(skill.tags)}"


def embedded(texts: Sequence[str], embedder: EmbeddingProvider | None) -> Matrix | None:
    """The vectors of texts; None, with a warning, where the model fails or there is none."""
    if embedder is None or not texts:
        return None
    try:
        return embedder.embed(texts)
    except EmbeddingError as error:
        log.warning("embedding model is not available, keywords only: %s", error)
        return None
