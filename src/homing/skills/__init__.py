"""The right SKILL.md for a request, in two languages, from a thousand folders."""

from __future__ import annotations

from homing.skills.hits import FoundSkills, SkillHit, Why
from homing.skills.scan_report import ScanEntry, ScanReport
from homing.skills.service import ToolRetrievalService
from homing.skills.skill import Skill

__all__ = ["FoundSkills", "ScanEntry", "ScanReport", "Skill", "SkillHit", "ToolRetrievalService", "Why"]
