"""What a check saw, in one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check saw. `mend` is the command or the setting that puts it right; empty where nothing is wrong.

    `detail_zh` says the same as `detail` in Chinese; it is empty where that is names and numbers, or an error's words.
    """

    check: str
    status: Status
    detail: str
    mend: str = ""
    detail_zh: str = ""


def healthy(findings: Sequence[Finding]) -> bool:
    """Whether nothing failed; warnings are no failures."""
    return all(finding.status != "fail" for finding in findings)
