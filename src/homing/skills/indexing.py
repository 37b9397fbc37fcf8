"""A skill as records: one for its head (name, description, tags), and one for each passage of its body."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable

from homing.records import VectorRecord
from homing.skills.skill import Skill, head_text
from homing.text.folding import fold
from homing.text.paragraphs import Paragraph, paragraphs

HEADS = "skills"
"""The collection of the heads. Their metadata is all that is known of a skill, and their ids are the skills'."""
PASSAGES = "skills.passages"

NAME_KEY = "name_key"
"""The metadata that an exact name is found by, however it is written."""

MAX_CHARACTERS = 60_000
"""How much of a body is searched: its beginning, some thirty pages."""
MAX_PASSAGES = 24
MIN_CHARACTERS = 400
"""Characters below which a paragraph is joined with the next: a passage says enough to be recognised by."""

_BETWEEN = re.compile(r"[^\w+#]|_")


def passages_of(body: str) -> list[str]:
    """The passages of a body, in order. A long one is cut after `MAX_CHARACTERS` and `MAX_PASSAGES`."""
    found: list[str] = []
    gathered = ""
    for paragraph in _paragraphs(body[:MAX_CHARACTERS]):
        gathered = f"{gathered}\n\n{paragraph.text}" if gathered else paragraph.text
        if len(gathered) >= MIN_CHARACTERS:
            found.append(gathered)
            gathered = ""
            if len(found) == MAX_PASSAGES:
                return found
    return [*found, gathered] if gathered else found


def content_of(skill: Skill) -> str:
    """Names what a skill says, for one that has no file."""
    said = json.dumps([skill.name, skill.description, skill.tags, skill.body])
    return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()


def head_record(skill: Skill, content: str) -> VectorRecord:
    """The head of a skill; `content` names what it was made of."""
    known = {
        "name": skill.name,
        "description": skill.description,
        "tags": list(skill.tags),
        NAME_KEY: name_key(skill.name),
        "content": content,
    }
    # What an author writes may hold dates and the like, which JSON does not know.
    written = json.loads(json.dumps(dict(skill.metadata), default=str))
    return VectorRecord(skill.id, HEADS, None, {**written, **known}, head_text(skill), keywords=head_words(skill))


def passage_records(skill: Skill) -> list[VectorRecord]:
    """The passages of a skill's body."""
    return [
        VectorRecord(passage_id(skill.id, number), PASSAGES, None, {"skill": skill.id}, text)
        for number, text in enumerate(passages_of(skill.body))
    ]


def skill_of(head: VectorRecord) -> Skill:
    """The skill of a head, without its body."""
    known = {key: value for key, value in head.metadata.items() if key != NAME_KEY}
    # The id is where a skill is found; the path in the metadata is how it was given.
    return Skill(known["name"], known["description"], tuple(known["tags"]), head.id, "", known)


def head_words(skill: Skill) -> str:
    """What the keyword leg reads of a head: the name as it is written, too."""
    return f"{skill.name}\n{skill.description}\n{' '.join(skill.tags)}"


def passage_id(skill: str, number: int) -> str:
    """The id of a passage."""
    return f"{skill}#{number}"


def owner_of(passage: str) -> str:
    """The id of the skill that a passage belongs to."""
    return passage.rpartition("#")[0]


def passage_ids(skills: Iterable[str], first: int = 0) -> list[str]:
    """Every id that a passage of these skills can have, from a number on."""
    return [passage_id(skill, number) for skill in skills for number in range(first, MAX_PASSAGES)]


def name_key(text: str) -> str:
    """A name without case, joints and white space: `Git Commit`, `git_commit` and `/git-commit` are one."""
    return _BETWEEN.sub("", fold(text).casefold()) or text


def _paragraphs(body: str) -> list[Paragraph]:
    return paragraphs(body) if body.strip() else []
