"""The right SKILL.md for a request, in two languages, from a thousand folders."""

from __future__ import annotations

from homing.skills.hits import FoundSkills, SkillHit, Why
from homing.skills.prompt import SkillPrompt, skill_prompt
from homing.skills.scan_report import ScanEntry, ScanReport
from homing.skills.service import SkillService
from homing.skills.skill import Skill
from homing.skills.tool_index import ToolIndex
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
