"""Where the skills of a folder are. Links are never followed out of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from homing.errors import NotFound

FILE = "SKILL.md"
PASSED_OVER = frozenset({".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", "site-packages"})


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with a SKILL.md, or one that was passed over, and then why."""

    folder: Path
    file: Path
    passed_over: str = ""


def skill_places(root: Path) -> Iterator[Place]:
    """The folders below `root` (itself included) that hold a SKILL.md, by path.

    A link to a folder is not followed: what lies inside the root is found where it is, and what lies outside is not
    ours. A SKILL.md that is a link is read where its target lies inside.
    """
    if not root.is_dir():
        raise NotFound(f"there is no folder {root}; give the folder that holds the skills")
    real = root.resolve()
    for at, folders, files in os.walk(real):
        folders.sort()
        for name in [name for name in folders if os.path.islink(os.path.join(at, name))]:
            target = Path(at, name).resolve()
            if not target.is_relative_to(real) and any(_named(target)):
                yield Place(Path(at, name), Path(at, name, FILE), "a link that leads out of the folder")
        folders[:] = [name for name in folders if name not in PASSED_OVER]
        # Of SKILL.md and skill.md in one folder the first is meant.
        found = min((name for name in files if name.lower() == "skill.md"), default=None)
        if found is not None:
            yield _place(Path(at), Path(at, found), real)


def _place(folder: Path, file: Path, root: Path) -> Place:
    if file.is_symlink() and not file.resolve().is_relative_to(root):
        return Place(folder, file, "a link that leads out of the folder")
    return Place(folder, file)


def _named(folder: Path) -> Iterator[str]:
    try:
        yield from (name for name in os.listdir(folder) if name.lower() == "skill.md")
    except OSError:
        return
