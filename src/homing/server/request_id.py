"""The name of a request, in its answer, in its errors and in every line that is logged about it."""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar

HEADER = "x-request-id"
REQUEST_ID: ContextVar[str] = ContextVar("homing_request_id", default="")

_ACCEPTED = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def request_id(given: str | None) -> str:
    """The id that a caller gave, where it can stand in a log; else a new one."""
    return given if given and _ACCEPTED.fullmatch(given) else secrets.token_hex(8)
