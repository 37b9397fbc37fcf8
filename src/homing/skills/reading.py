"""A whole skill again: from its SKILL.md as it is now, or from what is indexed where that is gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from homing.errors import InvalidArgument, NotFound
from homing.skills.discovery import Place, skill_places
from homing.skills.index import SkillIndex
from homing.skills.skill import Skill
from homing.skills.skill_file import Unreadable, parse_skill, read_content


def whole_skill(wanted: str, index: SkillIndex) -> Skill:
    """The skill with that id, folder or name, its body included. Raises NotFound, or InvalidArgument for a shared name.

    The body is that of the file as it is now; where there is none, the passages that were indexed.
    """
    ids = index.find(wanted)
    if len(ids) > 1:
        raise InvalidArgument(f"{len(ids)} skills are named {wanted!r}; give the id of one: {', '.join(ids)}")
    found = index.skills(ids)
    if not found:
        raise NotFound(f"no skill {wanted!r} is indexed; search for it, or list the skills, to see which there are")
    [skill] = found
    try:
        body = _body_on_disk(Path(skill.id))
    except Unreadable:
        body = "\n\n".join(index.passages(skill.id))
    return replace(skill, body=body)


def _body_on_disk(folder: Path) -> str:
    # A skill that was indexed without a folder has its name in the place of one, which is no path to follow. Nor is a
    # link that was put there after the scan had looked where it leads.
    file = next((place.file for place in _places(folder) if place.folder == folder and not place.passed_over), None)
    if file is None:
        raise Unreadable("there is no SKILL.md")
    return parse_skill(read_content(file), folder).skill.body


def _places(folder: Path) -> Iterator[Place]:
    return skill_places(folder) if folder.is_absolute() and folder.is_dir() else iter(())
