"""The addresses of what can be read whole: `homing://skills/NAME`, `homing://documents/PROJECT/DOCUMENT`."""

from __future__ import annotations

from urllib.parse import quote

SKILL = "homing://skills/{skill}"
DOCUMENT = "homing://documents/{project}/{document}"


def skill_uri(key: str) -> str:
    """The address of a skill by its id, or by another key that is its own."""
    return SKILL.replace("{skill}", quote(key, safe=""))


def document_uri(project: str, document: str) -> str:
    """The address of a document."""
    return DOCUMENT.replace("{project}", quote(project, safe="")).replace("{document}", quote(document, safe=""))
