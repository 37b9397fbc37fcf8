"""What a search for skills answers, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from homing.records import Metadata, Mode, Notice


@dataclass(frozen=True, slots=True)
class Why:
    """One reason for a hit: which leg found it, in which part of the skill, and the text that matched.

    `value` is the cosine of the vector leg, and for keywords how many rare words the text shares with the query.
    """

    leg: Literal["vector", "keyword", "name"]
    part: Literal["head", "body"]
    text: str
    value: float
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillHit:
    """A skill that fits. `score` is in [0, 1] and orders the hits; `cosine` is that of its head, where there is one."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    path: str
    score: float
    cosine: float | None
    why: tuple[Why, ...]
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class FoundSkills(Sequence[SkillHit]):
    """The answer of a search; iterates and indexes like the list of its hits, the highest score first.

    `degraded` is true when the model could not be asked and keywords alone answered; `reason` is then a stable code and
    `notice` says it to a person. `notice` also says when nothing reached the threshold.
    """

    hits: tuple[SkillHit, ...]
    mode: Mode
    degraded: bool = False
    reason: str | None = None
    notice: Notice | None = None
    timings: Mapping[str, float] = field(default_factory=dict)

    def __iter__(self) -> Iterator[SkillHit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: Any) -> Any:
        return self.hits[index]
