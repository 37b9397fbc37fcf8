"""Every operation once: what it takes and gives, who may, and what does it. Surfaces bind them; see `OPERATIONS`."""

# Each module adds its operations; on HTTP the first that fits a path has it.
from homing.operations import (
    devices,
    doctor,
    documents,
    evaluations,
    examples,
    knowledge,
    memory,
    models_in_use,
    search,
    seed_channels,
    skills,
)
from homing.operations.operation import OPERATIONS, Call, Operation

__all__ = [
    "OPERATIONS",
    "Call",
    "Operation",
    "devices",
    "doctor",
    "documents",
    "evaluations",
    "examples",
    "knowledge",
    "memory",
    "models_in_use",
    "search",
    "seed_channels",
    "skills",
]
