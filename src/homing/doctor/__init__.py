"""Proves that the parts work instead of asking whether they are there."""

from __future__ import annotations

from homing.doctor.checkup import Part, diagnose
from homing.doctor.finding import Finding, Status, healthy

__all__ = ["Finding", "Part", "Status", "diagnose", "healthy"]
