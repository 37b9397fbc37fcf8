"""The right SKILL.md for a request, in two languages, from a thousand folders."""

from __future__ import annotations

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
