"""The right SKILL.md for a request, in two languages, from a thousand folders."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from homing.skills.finding import FoundSkills, SkillHit, Why
    from homing.skills.prompt import SkillPrompt, ToolIndex, skill_prompt
    from homing.skills.scanning import ScanEntry, ScanReport
    from homing.skills.service import SkillService
    from homing.skills.skill import Skill
    from homing.skills.tool_retrieval import ToolRetrievalService

__all__ = [
    "FoundSkills",
    "ScanEntry",
    "ScanReport",
    "Skill",
    "SkillHit",
    "SkillPrompt",
    "SkillService",
    "ToolIndex",
    "ToolRetrievalService",
    "Why",
    "skill_prompt",
]

# A search for skills needs neither what reads their folders nor the store of the tool index.
_HOMES = {
    "FoundSkills": "finding",
    "ScanEntry": "scanning",
    "ScanReport": "scanning",
    "Skill": "skill",
    "SkillHit": "finding",
    "SkillPrompt": "prompt",
    "SkillService": "service",
    "ToolIndex": "prompt",
    "ToolRetrievalService": "tool_retrieval",
    "Why": "finding",
    "skill_prompt": "prompt",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
