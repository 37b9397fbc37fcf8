"""What a check looks at, and what it saw, in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from homing.config import Settings
from homing.stores.registry import open_store
from homing.stores.store import Store

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


@contextmanager
def opened(settings: Settings) -> Iterator[Store | None]:
    """The store of a data folder; None where there is none yet. Makes none."""
    if not settings.store and not (settings.data / "homing.db").exists():
        yield None
        return
    store = open_store(settings.store_url)
    try:
        yield store
    finally:
        store.close()
