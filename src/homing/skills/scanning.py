"""Brings the index up to date with a folder of skills: only what changed is read in full and embedded."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from homing.errors import EmbeddingError
from homing.progress import Progress, no_progress
from homing.records import Metadata
from homing.skills.discovery import Place, skill_places
from homing.skills.index import SkillIndex
from homing.skills.marker import Marker, can_mark, content_hash, now
from homing.skills.scan_report import ScanEntry, ScanReport
from homing.skills.skill_file import SkillFile, Unreadable, parse_skill, read_content

log = logging.getLogger(__name__)

BATCH = 256
"""Skills that are written and embedded together."""
BATCH_CHARACTERS = 100_000
"""A batch ends at so many characters of text too: some seconds of work, after which people see how far it is."""


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
        self._model = _default(index)
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


def _default(index: SkillIndex) -> str:
    """The identity of the default model; empty where there is none that could be made."""
    try:
        return index.engine.models.provider().id if index.engine.models.embeds else ""
    except EmbeddingError as error:
        log.warning("embedding model is not available, keywords only: %s", error)
        return ""


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
