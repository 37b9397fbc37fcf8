"""What a check looks at, what it saw, in one line, and what puts right what is wrong."""

from __future__ import annotations

import shlex
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

    It is a command, a line of homing.toml or, where neither can do it, what a person has to do. `fault` names what is
    wrong; tests/doctor plants each and mends it by what is said. `detail_zh` says the same as `detail` in Chinese; it
    is empty where that is names and numbers, or an error's words.
    """

    check: str
    status: Status
    detail: str
    mend: str = ""
    detail_zh: str = ""
    fault: str = ""


def wrong(fault: str, check: str, status: Status, detail: str, mend: str, zh: str = "") -> Finding:
    """A finding of something that is not in order."""
    return Finding(check, status, detail, mend, zh, fault)


def failed(fault: str, check: str, detail: str, mend: str, zh: str = "") -> Finding:
    """A finding of something that does not work."""
    return wrong(fault, check, "fail", detail, mend, zh)


def fine(check: str, detail: str, zh: str = "") -> Finding:
    """A finding of something that is in order."""
    return Finding(check, "ok", detail, detail_zh=zh)


def healthy(findings: Sequence[Finding]) -> bool:
    """Whether nothing failed; warnings are no failures."""
    return all(finding.status != "fail" for finding in findings)


def quoted(place: object) -> str:
    """A path or a name as a word of a command."""
    return shlex.quote(str(place))


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
