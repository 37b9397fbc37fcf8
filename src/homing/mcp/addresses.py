"""The addresses of resources: `homing://skills/NAME`, `homing://documents/PROJECT/DOCUMENT`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from homing.records import text_hash
from homing.skills.skill import Skill

SKILL = "homing://skills/{skill}"
DOCUMENT = "homing://documents/{project}/{document}"


def skill_keys(skills: Sequence[Skill]) -> Mapping[str, str]:
    """The last part of each skill's address, by id: its name, with a few letters more where several share it."""
    shared = Counter(skill.name for skill in skills)
    return {
        skill.id: skill.name if shared[skill.name] == 1 else f"{skill.name}~{text_hash(skill.id)[:8]}"
        for skill in skills
    }


def skill_uri(key: str) -> str:
    """The address of a skill by its key."""
    return SKILL.replace("{skill}", quote(key, safe=""))


def document_uri(project: str, document: str) -> str:
    """The address of a document."""
    return DOCUMENT.replace("{project}", quote(project, safe="")).replace("{document}", quote(document, safe=""))
