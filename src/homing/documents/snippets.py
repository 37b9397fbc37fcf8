"""The part of a text that shows why it was found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from homing.text.tokens import Span

_SPACE = re.compile(r"\s")

LENGTH = 120
BEFORE = 30
"""Characters shown, and how many of them stand before the first thing that was found."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """An excerpt on one line; `highlights` are places in it."""

    text: str
    highlights: tuple[Span, ...]


def snippet(text: str, found: Sequence[Span], length: int = LENGTH) -> Snippet:
    """About `length` characters of the text around the first place; dots show where it was cut."""
    start = max(0, found[0].start - BEFORE) if found else 0
    end = min(len(text), start + length)
    start = max(0, min(start, end - length))
    lead, trail = "…" if start else "", "…" if end < len(text) else ""
    # White space becomes blanks one by one, so that places stay where they are.
    shown = _SPACE.sub(" ", text[start:end])
    shift = len(lead) - start
    inside = [Span(max(one.start, start) + shift, min(one.end, end) + shift) for one in found]
    return Snippet(lead + shown + trail, tuple(one for one in inside if one.start < one.end))
