"""The right SKILL.md for a request, in two languages, from a thousand folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homing.lazy import names_from

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

__getattr__ = names_from(
    __name__,
    finding="FoundSkills SkillHit Why",
    prompt="SkillPrompt ToolIndex skill_prompt",
    scanning="ScanEntry ScanReport",
    service="SkillService",
    skill="Skill",
    tool_retrieval="ToolRetrievalService",
)
