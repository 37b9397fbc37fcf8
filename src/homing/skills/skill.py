"""What a skill is, and what of it is embedded."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homing.errors import InvalidArgument

MAX_NAME = 200
MAX_DESCRIPTION = 4_000
"""Characters of a description that are kept; the model reads fewer."""

_JOINT = re.compile(r"[_\-./]+|(?<=[a-z0-9])(?=[A-Z])")
"""Where the words of `file_read`, `file-read` and `fileRead` meet: a model knows words better than identifiers."""


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as its author describes it.

    `path` is its folder, where it has one; two skills of one name are told apart by it. `body` is the text of SKILL.md
    below the front matter. `metadata` is whatever else was said about it: JSON-like, string keys.
    """

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    path: str = ""
    body: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidArgument(f"a skill needs a name; got {self.name!r}")
        if not isinstance(self.description, str) or not isinstance(self.body, str) or not isinstance(self.path, str):
            raise InvalidArgument(f"description, body and path of skill {self.name!r} are text")
        if isinstance(self.tags, str):
            raise InvalidArgument(f"tags of skill {self.name!r} are a list of texts; got the single text {self.tags!r}")
        for name in ("name", "description", "path", "body"):
            object.__setattr__(self, name, _encodable(getattr(self, name)))
        object.__setattr__(self, "tags", tuple(_encodable(str(tag)) for tag in self.tags))

    @property
    def id(self) -> str:
        """The key of its record: the folder, or the name of a skill that has none."""
        return self.path or self.name

    @classmethod
    def of(cls, given: Skill | Mapping[str, Any]) -> Skill:
        """A skill from a mapping with its fields; other fields become metadata."""
        if isinstance(given, Skill):
            return given
        if not isinstance(given, Mapping):
            raise InvalidArgument(f"a skill is a Skill or a mapping with its fields; got {type(given).__name__}")
        known = {key: given[key] for key in ("name", "description", "tags", "path", "body") if key in given}
        others = {key: value for key, value in given.items() if key not in known and key != "metadata"}
        return cls(**{"name": "", **known}, metadata={**dict(given.get("metadata") or {}), **others})


def head_text(skill: Skill) -> str:
    """What the vector of a skill is made from: its name as words, its description and its tags."""
    name = " ".join(_JOINT.sub(" ", skill.name).split())
    described = f"{name}: {skill.description}" if skill.description else name
    return f"{described} ({', '.join(skill.tags)})" if skill.tags else described


def one_line(text: str, longest: int) -> str:
    """A text without line breaks and control characters, cut where it is too long."""
    line = " ".join(text[: 4 * longest].split())
    if not line.isprintable():
        line = " ".join("".join(char if char.isprintable() else " " for char in line).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _encodable(text: str) -> str:
    """The text without what has no UTF-8 form: halves of surrogate pairs."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
