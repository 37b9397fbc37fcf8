"""Brings the index up to date with a folder of skills, once or whenever it changes.

Only what changed is read in full and embedded; `.vectorized` in a skill's folder says what of it was indexed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from homing.errors import HomingError
from homing.progress import Progress, no_progress
from homing.records import Metadata
from homing.skills.index import SkillIndex
from homing.skills.skill import now
from homing.skills.skill_file import Place, SkillFile, Unreadable, parse_skill, read_content, skill_places

log = logging.getLogger(__name__)

BATCH = 256
"""Skills that are written and embedded together."""
BATCH_CHARACTERS = 100_000
"""A batch ends at so many characters of text too: some seconds of work, after which people see how far it is."""
Outcome = Literal["indexed", "unchanged", "skipped", "removed"]
NAME = ".vectorized"
INTERVAL = 0.5
"""Seconds between two looks. A look costs a walk through the folder and a stat for each skill."""


@dataclass(frozen=True, slots=True)
class _Changed:
    place: Place
    size: int
    hash: str
    file: SkillFile


class Scan:
    """One scan of one folder."""

    def __init__(self, folder: Path, index: SkillIndex) -> None:
        self._folder = folder
        self._index = index
        model = index.default_model()
        self._model = "" if model is None else model.id
        self._incomplete = index.incomplete(self._model)
        self._entries: list[ScanEntry] = []
        self._degraded = False

    def run(self, progress: Progress | None = None) -> ScanReport:
        """Index what is new or changed, leave the rest, forget what is gone. One bad file never stops it."""
        started = time.perf_counter()
        places = list(skill_places(self._folder))
        known = self._index.notes()
        changed = [one for place in places if (one := self._look(place, known)) is not None]
        done = len(places) - len(changed)
        report = progress or no_progress
        report(done, len(places))
        for batch in _batches(changed):
            self._put(batch)
            done += len(batch)
            report(done, len(places))
        self._forget(known)
        entries = tuple(sorted(self._entries, key=lambda entry: entry.path))
        return ScanReport(str(self._folder), entries, time.perf_counter() - started, self._degraded)

    def _look(self, place: Place, known: dict[str, Metadata]) -> _Changed | None:
        """What is to be indexed of a place; None, with its entry, where there is nothing to do."""
        if place.passed_over:
            self._skip(place, place.passed_over)
            return None
        note = known.get(str(place.folder), {})
        try:
            content = read_content(place.file)
            found = content_hash(content)
            if self._is_unchanged(place.folder, len(content), found, note):
                log.info("Skipping unchanged skill: %s", note["name"])
                flags = tuple(note.get("flags", ()))
                self._entries.append(ScanEntry(str(place.folder), str(note["name"]), "unchanged", flags=flags))
                return None
            return _Changed(place, len(content), found, parse_skill(content, place.folder))
        except Unreadable as error:
            self._skip(place, str(error))
            return None

    def _is_unchanged(self, folder: Path, size: int, content: str, note: Metadata) -> bool:
        if note.get("content") != content or str(folder) in self._incomplete:
            return False
        marker = Marker.read(folder)
        if marker is None:
            # Where nothing can be written beside the skill, the database alone remembers.
            return not can_mark(folder)
        return marker.matches(size, content, self._model)

    def _put(self, batch: Sequence[_Changed]) -> None:
        """Keep some skills, and mark those that have all of their vectors: for the others the next scan tries again."""
        time_of = now()
        skills = [replace(one.file.skill, metadata=_noted(one, time_of), path=str(one.place.folder)) for one in batch]
        ids = [skill.id for skill in skills]
        self._index.put([(skill, one.hash) for skill, one in zip(skills, batch, strict=True)], imported=True)
        self._index.engine.embed_until(lambda: not self._index.lacking(ids, self._model) and self._serves())
        lacking = self._index.lacking(ids, self._model) if self._model else set(ids)
        self._degraded |= bool(lacking)
        for one, skill in zip(batch, skills, strict=True):
            if skill.id not in lacking:
                Marker(time_of, one.size, one.hash, self._model).write(one.place.folder)
            self._entries.append(
                ScanEntry(skill.id, skill.name, "indexed", one.file.repairs, flags=one.file.suspicions)
            )

    def _serves(self) -> bool:
        return self._index.model == self._model

    def _forget(self, known: dict[str, Metadata]) -> None:
        kept = {entry.path for entry in self._entries if entry.outcome != "skipped"}
        gone = [
            key
            for key, note in known.items()
            if note.get("scanned") and key not in kept and Path(key).is_relative_to(self._folder)
        ]
        self._index.remove(gone)
        self._entries += [
            ScanEntry(key, str(known[key]["name"]), "removed", reason="the folder has no readable SKILL.md any more")
            for key in gone
            if all(entry.path != key for entry in self._entries)
        ]

    def _skip(self, place: Place, reason: str) -> None:
        log.warning("Skipping %s: %s", place.file, reason)
        self._entries.append(ScanEntry(str(place.folder), place.folder.name, "skipped", reason=reason))


def _batches(changed: Sequence[_Changed]) -> Iterator[list[_Changed]]:
    batch: list[_Changed] = []
    characters = 0
    for one in changed:
        batch.append(one)
        characters += len(one.file.skill.description) + len(one.file.skill.body)
        if len(batch) == BATCH or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _noted(one: _Changed, time_of: int) -> dict[str, Any]:
    """What is kept about a skill beside its fields: what its author wrote, and what the scan found."""
    return {
        **one.file.skill.metadata,
        "path": str(one.place.folder),
        "indexedAt": time_of,
        "size": one.size,
        "scanned": True,
        **({"flags": list(one.file.suspicions)} if one.file.suspicions else {}),
    }


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


def content_hash(content: bytes) -> str:
    """Names the exact content of a SKILL.md."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Marker:
    """What was indexed: when (milliseconds), how large the file was, its hash, and the model of its vector."""

    indexed_at: int
    size: int
    hash: str
    model: str

    @classmethod
    def read(cls, folder: Path) -> Marker | None:
        """The marker of a folder; None where there is none that can be read."""
        try:
            found = json.loads((folder / NAME).read_bytes())
            return cls(int(found["indexedAt"]), int(found["skillSize"]), str(found["skillHash"]), str(found["model"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def matches(self, size: int, content: str, model: str) -> bool:
        """Whether it speaks of this content and this model."""
        return (self.size, self.hash, self.model) == (size, content, model)

    def write(self, folder: Path) -> bool:
        """Put it into the folder, whole or not at all; False where the folder cannot be written."""
        fields = {"indexedAt": self.indexed_at, "skillSize": self.size, "skillHash": self.hash, "model": self.model}
        draft = folder / f"{NAME}.{os.getpid()}"
        try:
            draft.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
            os.replace(draft, folder / NAME)
        except OSError as error:
            draft.unlink(missing_ok=True) if os.access(folder, os.W_OK) else None
            log.info("%s cannot be written, the database alone remembers: %s", folder / NAME, error.strerror)
            return False
        return True


def can_mark(folder: Path) -> bool:
    """Whether a marker could be written here."""
    return os.access(folder, os.W_OK) and not (folder / NAME).is_dir()


class Watch:
    """Looks at a folder in a thread and scans it when something changed, until it is stopped (or its `with` ends)."""

    def __init__(
        self,
        folder: Path,
        scan: Callable[[Path], ScanReport],
        *,
        on_report: Callable[[ScanReport], None] | None = None,
        interval: float = INTERVAL,
    ) -> None:
        self._folder = folder
        self._scan = scan
        self._on_report = on_report
        self._interval = interval
        self._stopped = threading.Event()
        self._seen = _look(folder)
        self._report(self._scan(folder))
        self._thread = threading.Thread(target=self._follow, name="homing-skills-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop looking; a scan that is under way is waited for."""
        self._stopped.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._stopped.wait(self._interval):
            try:
                now = _look(self._folder)
                if now != self._seen:
                    # Taken before the scan: a change during it is seen at the next look.
                    report = self._scan(self._folder)
                    self._seen = now
                    self._report(report)
            except (HomingError, OSError) as error:
                log.warning("watching %s: %s; trying again", self._folder, error)

    def _report(self, report: ScanReport) -> None:
        if self._on_report is not None:
            self._on_report(report)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()


def _look(folder: Path) -> dict[str, tuple[int, int, int]]:
    """The time, size and number of every SKILL.md: another file in its place has another number."""
    found = {}
    for place in skill_places(folder):
        try:
            stat = place.file.stat()
        except OSError:
            continue
        found[str(place.file)] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return found
