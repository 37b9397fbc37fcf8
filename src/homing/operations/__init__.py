"""Every operation once: what it takes and gives, who may, and what does it. Surfaces bind them; see `OPERATIONS`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from homing.operations.operation import Call, Operation

if TYPE_CHECKING:
    from homing.operations.operation import OPERATIONS

__all__ = ["OPERATIONS", "Call", "Operation"]

# Each module adds its operations; on HTTP the first that fits a path has it.
MODULES = (
    "devices", "doctor", "documents", "evaluations", "examples", "folders", "knowledge", "memory", "models_in_use",
    "search", "seed_channels", "skills",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """All operations are imported when all are asked for: a command of the shell needs those of one module."""
    if name != "OPERATIONS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for module in MODULES:
        import_module(f"{__name__}.{module}")
    return import_module(f"{__name__}.operation").OPERATIONS
