"""What a scan did, folder by folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["indexed", "unchanged", "skipped", "removed"]


@dataclass(frozen=True, slots=True)
class ScanEntry:
    """What became of one folder: how its file was repaired, why it was skipped, what in it looks like injection."""

    path: str
    name: str
    outcome: Outcome
    repairs: tuple[str, ...] = ()
    reason: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanReport:
    """Every folder of a scan. `degraded` says that there was no model: what was indexed is found by keywords only."""

    folder: str
    entries: tuple[ScanEntry, ...]
    seconds: float
    degraded: bool = False

    def of(self, outcome: Outcome) -> list[ScanEntry]:
        """The folders with that outcome."""
        return [entry for entry in self.entries if entry.outcome == outcome]

    @property
    def repaired(self) -> list[ScanEntry]:
        """The folders whose file had to be repaired to be read."""
        return [entry for entry in self.entries if entry.repairs]

    @property
    def flagged(self) -> list[ScanEntry]:
        """The folders with a text that seems to command the model that reads it."""
        return [entry for entry in self.entries if entry.flags]

    @property
    def counts(self) -> dict[str, int]:
        """How many folders of each kind."""
        outcomes: tuple[Outcome, ...] = ("indexed", "unchanged", "skipped", "removed")
        found: dict[str, int] = {outcome: len(self.of(outcome)) for outcome in outcomes}
        return {**found, "repaired": len(self.repaired), "flagged": len(self.flagged)}
