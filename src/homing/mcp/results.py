"""What the tools answer, as data: these models are published as the output schemas of the tools.

Texts in them were written by others. `flags` names what in a text looks like an attempt to command a model; a hint, not
a verdict, and empty for most texts.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from homing.devices.answer import Decision

Mode = Literal["semantic", "hybrid", "keyword"]


class Found(BaseModel):
    """How a search was answered."""

    mode: Mode = Field(description="which legs answered")
    degraded: bool = Field(False, description="true when the embedding model was down and words alone answered")
    reason: str | None = Field(None, description="stable code of what failed")
    notice: str | None = Field(None, description="the same for a person, in Chinese and English")


class SkillFound(BaseModel):
    """A skill that fits."""

    id: str = Field(description="pass it to get_skill")
    name: str
    description: str
    tags: list[str]
    path: str = Field(description="its folder on the machine of the server")
    score: float = Field(description="0 to 1; above 0.5 is related")
    uri: str = Field(description="the resource with its SKILL.md")
    flags: list[str]


class SkillsFound(Found):
    """Skills, the best first."""

    skills: list[SkillFound]


class SkillText(BaseModel):
    """A whole skill."""

    id: str
    name: str
    description: str
    tags: list[str]
    path: str
    uri: str
    text: str = Field(description="the body of SKILL.md")
    truncated: bool = Field(description="true when the text was cut; the resource has all of it")
    flags: list[str]


class Passage(BaseModel):
    """A passage of a document."""

    project: str
    document: str
    text: str
    start: int = Field(description="where it begins in the document, in characters")
    end: int
    score: float | None = Field(description="0 to 1; above 0.5 is related; null where only words matched")
    keywords: list[str] = Field(description="words of the query that it contains")
    uri: str = Field(description="the resource with the whole document")
    flags: list[str]


class PassagesFound(Found):
    """Passages, the best first."""

    passages: list[Passage]


class Memory(BaseModel):
    """Something remembered."""

    id: str
    collection: str
    text: str
    session: str
    tags: list[str]
    score: float | None
    flags: list[str]


class Recalled(Found):
    """Memories, the nearest first."""

    memories: list[Memory]


class Remembered(BaseModel):
    """What was saved; it can be recalled from now on."""

    id: str
    collection: str
    embedded: bool = Field(description="false while only its words find it, because the embedding model is behind")


class DeviceFound(BaseModel):
    """A device that is meant, and what to tell it."""

    id: str
    name: str
    room: str | None
    type: str | None
    command: str | None = Field(description="id of the command that does what was said")
    value: float | str | bool | None = Field(description="what to set, where the command takes a value")
    change: float | None = Field(description="by how much to move what is set now")
    score: float
    reasons: list[str]


class StepFound(BaseModel):
    """One command of the sentence."""

    decision: Decision = Field(description="act: give the commands; ask: put the question first; refuse: do nothing")
    devices: list[DeviceFound]
    hint: str | None = Field(description="why it is not acted upon, as a stable code")
    question: str = Field(description="what to ask or tell the speaker")
    suggestions: list[str]


class DevicesFound(BaseModel):
    """What a sentence means in this home. Nothing was carried out."""

    decision: Decision
    steps: list[StepFound]
    degraded: bool
    reason: str | None
    state: dict[str, Any] = Field(description="pass it with the next sentence, so that 'it' and 'that one' are known")
