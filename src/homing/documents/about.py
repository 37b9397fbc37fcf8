"""What is known of the file that a document was read from."""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import asdict, dataclass, replace

from homing.files import FileText


@dataclass(frozen=True, slots=True)
class About:
    """The format of a file, when it was uploaded, and where its pages, sheets or chapters begin in the text.

    A document that was not uploaded has none of these.
    """

    format: str = ""
    uploaded_at: float = 0.0
    parts: tuple[tuple[int, str], ...] = ()

    @staticmethod
    def of(read: FileText, uploaded_at: float) -> About:
        """What is to be known of a file that was just read."""
        return About(read.format, uploaded_at, tuple((part.start, part.name) for part in read.parts))

    @staticmethod
    def read(kept: str) -> About:
        """As it was kept."""
        fields = json.loads(kept)
        return About(**{**fields, "parts": tuple((start, name) for start, name in fields.get("parts", ()))})

    def keep(self) -> str:
        """As it is kept."""
        return json.dumps(asdict(self), separators=(",", ":"))

    def edited(self) -> About:
        """What is still true after somebody has changed the text: its pages are no longer where they were."""
        return replace(self, parts=())

    def part_at(self, offset: int) -> str:
        """The name of the page, sheet or chapter that a character stands in; empty where there are none."""
        at = bisect_right(self.parts, offset, key=lambda part: part[0]) - 1
        return self.parts[at][1] if at >= 0 else ""
