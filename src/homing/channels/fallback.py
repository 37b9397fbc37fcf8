"""An answer that is not what was asked for says so, to programs and to people."""

from __future__ import annotations

from homing.channels.message import Fallback
from homing.engine.search import NOTICES
from homing.records import Notice

NO_MODEL = "vector:MODEL_NOT_READY"


def fallback(reason: str | None, notice: Notice | None) -> Fallback:
    """What to show; without a reason there is simply no model."""
    told = notice or NOTICES["vector"]
    return Fallback(reason=reason or NO_MODEL, notice=told.zh, notice_en=told.en)
