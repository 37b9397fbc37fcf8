"""Skill folders for tests."""

from __future__ import annotations

from pathlib import Path


def write_skill(root: Path, name: str, text: str | bytes) -> Path:
    """A folder with a SKILL.md of this content."""
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    content = text.encode() if isinstance(text, str) else text
    (folder / "SKILL.md").write_bytes(content)
    return folder


def front(name: str, description: str, body: str = "", **fields: str) -> str:
    """A well-formed SKILL.md."""
    more = "".join(f"{key}: {value}\n" for key, value in fields.items())
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n{body}"
