"""Skills, indexed and found."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from homing.database.locking import WriteLock
from homing.database.private import private_folder
from homing.engine import Engine
from homing.errors import EmbeddingError, InvalidArgument, NotFound
from homing.progress import Progress
from homing.records import VectorRecord
from homing.skills.finding import DEADLINE, FoundSkills, find
from homing.skills.index import HEADS, SkillIndex, content_of
from homing.skills.skill import Skill, head_text, now
from homing.vectors import Vector

if TYPE_CHECKING:
    from homing.skills.scanning import ScanReport, Watch

log = logging.getLogger(__name__)

SCAN_LOCK = ".skills-scan.lock"
ALMOST_ZERO = np.float32(1e-12)
"""Too little to change a cosine."""
MAX_SCAN_SECONDS = 3_600.0
"""Seconds that a scan waits for another one."""


class SkillService:
    """Indexes skills in a store and finds the ones that a request needs.

    What was indexed is found by its words at once and by its meaning as soon as the engine has embedded it. Safe to
    call from several threads; several processes may share the store. Of several scans on one machine, by whoever has
    the same `folder`, one runs at a time.
    """

    def __init__(self, open_engine: Callable[[], Engine], folder: str | Path, *, deadline: float = DEADLINE) -> None:
        self._open_engine = open_engine
        self._folder = Path(folder)
        self._deadline = deadline

    @cached_property
    def engine(self) -> Engine:
        """What the skills stand on, opened when it is first needed."""
        return self._open_engine()

    @cached_property
    def _index(self) -> SkillIndex:
        return SkillIndex(self.engine)

    def initialize(self) -> None:
        """Load a model that runs in this process; one that cannot be loaded costs a warning."""
        if (embedder := self._index.default_model()) is not None:
            try:
                # The question is for the tokenizer, but the whole model is loaded to answer it.
                embedder.truncated([""])
            except EmbeddingError as error:
                log.warning("embedding model failed to load, keywords only: %s", error)

    # Indexing

    def index_skill(self, skill: Skill | Mapping[str, Any]) -> str:
        """Index one skill; returns its id. One of the same name and folder is replaced."""
        return self.index_skills([skill])[0]

    def index_skills(self, skills: Sequence[Skill | Mapping[str, Any]]) -> list[str]:
        """Index several skills, embedded together; returns their ids."""
        given = [_dated(Skill.of(one)) for one in skills]
        keyed = [replace(one, path=self._key(one)) for one in given]
        self._index.put([(one, content_of(one)) for one in {one.id: one for one in keyed}.values()])
        # What was indexed by its name alone has a folder now.
        self._index.remove(self._index.existing([one.name for one in given if one.path and one.path != one.name]))
        self.engine.embed_written()
        return [one.id for one in keyed]

    def update_skill(self, skill: Skill | Mapping[str, Any]) -> str:
        """Make the vector of an indexed skill again and overwrite its record. Raises NotFound for an unknown one."""
        wanted = Skill.of(skill)
        if not self._index.find(wanted.path or wanted.name) and not self._index.find(wanted.name):
            raise NotFound(f"no skill {wanted.name!r} is indexed; index it with index_skill")
        return self.index_skill(wanted)

    def remove_skill(self, skill: Skill | str) -> int:
        """Remove a skill by its id, folder or name; returns how many records went (two folders may share a name)."""
        return self._index.remove(self._index.find(skill if isinstance(skill, str) else skill.id))

    def scan(self, folder: str | Path, *, progress: Progress | None = None) -> ScanReport:
        """Bring the index up to date with a folder of skills. Of two scans at once the second finds nothing to do."""
        from homing.skills.scanning import Scan

        root = Path(folder).resolve()
        private_folder(self._folder)
        with WriteLock(self._folder / SCAN_LOCK, wait=MAX_SCAN_SECONDS).held():
            return Scan(root, self._index).run(progress)

    def watch(
        self,
        folder: str | Path,
        *,
        on_report: Callable[[ScanReport], None] | None = None,
        interval: float | None = None,
    ) -> Watch:
        """Scan a folder now and again whenever a SKILL.md in it changes, until the returned watch is stopped."""
        from homing.skills.scanning import INTERVAL, Watch

        return Watch(Path(folder).resolve(), self.scan, on_report=on_report, interval=interval or INTERVAL)

    # Finding

    def find_relevant_skills(
        self, query: str, limit: int = 5, threshold: float | None = None, *, cut: bool = False
    ) -> FoundSkills:
        """The skills that fit a request, the best first, at most `limit`, none below `threshold`.

        `cut` leaves out weak ones, and all of them where the first is not likely right, and says how many. Where the
        model fails, a warning is logged and keywords answer. Raises RetrievalFailed where the store fails.
        """
        return find(self._index, query, limit, threshold, cut=cut, deadline=self._deadline)

    def get_embedding(self, skill: Skill | Mapping[str, Any]) -> Vector | None:
        """The vector of a skill's name, description and tags by the default model; None where it fails (a warning).

        No value of it is zero: what an 8-bit model rounds to nothing is given as next to nothing.
        """
        embedder = self._index.default_model()
        try:
            rows = None if embedder is None else embedder.embed([head_text(Skill.of(skill))])
        except EmbeddingError as error:
            log.warning("embedding model is not available, keywords only: %s", error)
            return None
        return None if rows is None else np.where(rows[0] == 0, ALMOST_ZERO, rows[0])

    def list_skills(self) -> list[Skill]:
        """Every indexed skill, by id."""
        return self._index.skills()

    def records(self) -> list[VectorRecord]:
        """Every indexed skill as a record, by id: the text that is embedded, and its vector where it has one."""
        return list(self.engine.store.records(HEADS))

    def get_skill(self, skill: str) -> Skill:
        """The skill with that id, folder or name, with its body. Raises NotFound; InvalidArgument for a shared name.

        The body is that of the file as it is now; where there is none, the passages that were indexed.
        """
        ids = self._index.find(skill)
        if len(ids) > 1:
            raise InvalidArgument(f"{len(ids)} skills are named {skill!r}; give the id of one: {', '.join(ids)}")
        found = self._index.skills(ids)
        if not found:
            raise NotFound(f"no skill {skill!r} is indexed; search for it, or list the skills, to see which there are")
        body = _body_on_disk(Path(found[0].id))
        return replace(found[0], body="\n\n".join(self._index.passages(found[0].id)) if body is None else body)

    def close(self) -> None:
        """Nothing is held here; the engine is closed by whoever opened it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _key(self, skill: Skill) -> str:
        """The id of a skill: its folder; for one without, that of the only skill of this name, or the name."""
        if skill.path:
            return os.path.abspath(skill.path)
        same = self._index.named(skill.name)
        return same[0] if len(same) == 1 else skill.name


def _dated(skill: Skill) -> Skill:
    return replace(skill, metadata={**skill.metadata, "path": skill.path, "indexedAt": now()})


def _body_on_disk(folder: Path) -> str | None:
    from homing.skills.skill_file import Unreadable, parse_skill, read_content, skill_places

    # A skill that was indexed without a folder has its name in the place of one, which is no path to follow. Nor is a
    # link that was put there after the scan had looked where it leads.
    places = skill_places(folder) if folder.is_absolute() and folder.is_dir() else iter(())
    file = next((place.file for place in places if place.folder == folder and not place.passed_over), None)
    try:
        return None if file is None else parse_skill(read_content(file), folder).skill.body
    except Unreadable:
        return None
