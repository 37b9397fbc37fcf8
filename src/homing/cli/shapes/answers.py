"""The JSON of commands that search, and of every command that fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from homing.documents.folders import Refreshed
from homing.records import LegShare, Notice
from homing.skills.finding import SkillHit
from homing.skills.scanning import ScanEntry

Mode = Literal["semantic", "hybrid", "keyword"]


class Failed(TypedDict):
    """What every command prints where it fails; the exit code is not 0 then."""

    error: Error


class Error(TypedDict):
    """`code` is stable, `message` says what to do next."""

    code: str
    message: str
    details: Mapping[str, Any]


class Hit(TypedDict):
    """`score` is on the model's readable scale, and null where only words matched; `fused` orders the hits."""

    id: str
    collection: str
    text: str
    metadata: Mapping[str, Any]
    score: float | None
    cosine: float | None
    distance: float | None
    fused: float
    legs: tuple[LegShare, ...]
    keywords: tuple[str, ...]
    reasons: tuple[str, ...]


class Answered(TypedDict):
    """How a search was answered; `degraded` says that a leg failed, `reason` which and why. Timings in milliseconds."""

    mode: Mode
    degraded: bool
    reason: str | None
    notice: Notice | None
    timings: Mapping[str, float]


class Found(Answered):
    """The answer of a search."""

    query: str
    hits: tuple[Hit, ...]


class FoundInFolder(Found):
    """The answer of a search, and what was indexed for it."""

    index: Refreshed


class SkillsFound(Answered):
    """The skills that a request needs, the best first."""

    hits: tuple[SkillHit, ...]


class Scanned(TypedDict):
    """What a scan did, folder by folder, and in numbers."""

    folder: str
    entries: tuple[ScanEntry, ...]
    seconds: float
    degraded: bool
    counts: Mapping[str, int]


class ListedSkill(TypedDict):
    """A skill that is indexed, with whatever its front matter says beside."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    path: str
    indexedAt: int
    model: str


class SkillPrompt(TypedDict):
    """The block for a system prompt, and the names in it."""

    text: str
    skills: tuple[str, ...]
    tokens: int
    truncated: bool
