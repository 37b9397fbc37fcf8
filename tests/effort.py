"""How much of what could be tried for hours is tried: a little in `make test`, all of it in `make soak`."""

from __future__ import annotations

import os

SOAK = os.environ.get("HOMING_SOAK") == "1"


def times(few: int, *, in_full: int) -> int:
    """How often something is tried: `few` times within seconds, or `in_full`."""
    return in_full if SOAK else few
