"""Modules that take time to load: imported when a command first uses them, so that the shell starts quickly."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from homing.cli import reports
    from homing.operations import devices, doctor, documents, knowledge, memory, models_in_use, skills
else:

    class _Lazy:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            return getattr(import_module(self._name), attribute)

    reports = _Lazy("homing.cli.reports")
    devices, doctor, documents, knowledge, memory, models_in_use, skills = (
        _Lazy(f"homing.operations.{name}")
        for name in ("devices", "doctor", "documents", "knowledge", "memory", "models_in_use", "skills")
    )

__all__ = ["devices", "doctor", "documents", "knowledge", "memory", "models_in_use", "reports", "skills"]
