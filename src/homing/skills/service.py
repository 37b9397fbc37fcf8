"""Skills, indexed and found: `ToolRetrievalService`."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from homing.embedders.provider import EmbeddingProvider
from homing.errors import EmbeddingError, HomingError, LanceSearchError, NotFound, StoreError
from homing.models.choice import Models
from homing.models.vector_holder import CollectionStatus
from homing.records import VectorRecord
from homing.skills.answering import Question, answer, check_question, ranker_of
from homing.skills.current_model import CurrentModel
from homing.skills.hits import FoundSkills
from homing.skills.indexing import content_of, embedded, rows_for
from homing.skills.marker import now
from homing.skills.ranking import Ranker
from homing.skills.reading import whole_skill
from homing.skills.reembedding import held, reembed
from homing.skills.scan_report import ScanReport
from homing.skills.scanning import Progress, Scan
from homing.skills.skill import Skill, head_text
from homing.skills.skill_rows import Contents
from homing.skills.skill_table import SkillTable
from homing.skills.watching import INTERVAL, Watch
from homing.stores.lance.engine import preload
from homing.stores.lance.locking import WriteLock
from homing.vectors import Scale, Vector

log = logging.getLogger(__name__)

FOLDER = "skills.lance"
SCAN_LOCK = ".skills-scan.lock"
TRY_AGAIN = 5.0
"""Seconds between two attempts to embed again behind the scenes."""
NEXT_TO_NOTHING = np.float32(1e-12)
"""Too little to change a cosine."""
LONGEST_SCAN = 3_600.0
"""Seconds that a scan waits for another one."""


class ToolRetrievalService:
    """Indexes skills in `data_dir`/skills.lance and finds the ones that a request needs.

    Which model embeds is asked of `models` before every piece of work (the default in the data folder's database), so a
    new default holds from the next call; `embedder` fixes one instead. Safe to call from several threads; several
    processes may share a data folder. Opens by itself; `initialize` does so at a time of your choice.
    """

    def __init__(
        self,
        data_dir: str | Path = "data",
        *,
        models: Models | None = None,
        embedder: EmbeddingProvider | None = None,
    ) -> None:
        self._data = Path(data_dir)
        self._model = CurrentModel(self._data, models, embedder)
        self._lock = threading.RLock()
        self._table: SkillTable | None = None
        self._held: tuple[Contents, Ranker] | None = None
        self._following: threading.Thread | None = None
        self._next_try = 0.0
        self._closed = False
        # The library takes seconds to import; they pass while the program does other things.
        preload()

    def initialize(self) -> None:
        """Open the table, creating it where there is none, and load a model that runs in this process.

        Existing data is left as it is. A model that cannot be loaded costs a warning. Raises LanceSearchError.
        """
        self._model.ensure_default()
        loading = threading.Thread(target=self._model.load, name="homing-skills-model", daemon=True)
        loading.start()
        self._opened()
        loading.join()

    # Indexing

    def index_skill(self, skill: Skill | Mapping[str, Any]) -> str:
        """Index one skill; returns its id. One of the same name and folder is replaced."""
        return self.index_skills([skill])[0]

    def index_skills(self, skills: Sequence[Skill | Mapping[str, Any]]) -> list[str]:
        """Index several skills, embedded together; returns their ids."""
        table = self._opened()
        notes = table.notes()
        given = [_noted(Skill.of(one)) for one in skills]
        keyed = [replace(one, path=_key(one, notes)) for one in given]
        outdated = [one.name for one in given if one.path and one.name in notes]
        last = {one.id: one for one in keyed}
        embedder = self._writer(table)
        rows = rows_for(list(last.values()), [content_of(one) for one in last.values()], embedder)
        model = embedder.id if embedder is not None and rows and rows[0].head.vector is not None else ""
        table.put(
            [replace(row, skill=replace(row.skill, metadata={**row.skill.metadata, "model": model})) for row in rows],
            model,
        )
        table.remove(outdated)
        return [one.id for one in keyed]

    def update_skill(self, skill: Skill | Mapping[str, Any]) -> str:
        """Make the vector of an indexed skill again and overwrite its record. Raises NotFound for an unknown one."""
        wanted = Skill.of(skill)
        notes = self._opened().notes()
        if _key(wanted, notes) not in notes and wanted.name not in notes:
            raise NotFound(f"no skill {wanted.name!r} is indexed; index it with index_skill")
        return self.index_skill(wanted)

    def remove_skill(self, skill: Skill | str) -> int:
        """Remove a skill by its id, folder or name; returns how many records went (two folders may share a name)."""
        wanted = skill if isinstance(skill, str) else skill.id
        table = self._opened()
        notes = table.notes()
        key = wanted if wanted in notes else os.path.abspath(wanted)
        gone = [key] if key in notes else [one for one, note in notes.items() if note.get("name") == wanted]
        return table.remove(gone)

    def scan(self, folder: str | Path, *, progress: Progress | None = None) -> ScanReport:
        """Bring the index up to date with a folder of skills. Of two scans at once the second finds nothing to do."""
        root = Path(folder).resolve()
        table = self._opened()
        with WriteLock(self._data / SCAN_LOCK, wait=LONGEST_SCAN).held():
            return Scan(root, table, self._scanner(table)).run(progress)

    def watch(
        self,
        folder: str | Path,
        *,
        on_report: Callable[[ScanReport], None] | None = None,
        interval: float = INTERVAL,
    ) -> Watch:
        """Scan a folder now and again whenever a SKILL.md in it changes, until the returned watch is stopped."""
        return Watch(Path(folder).resolve(), self.scan, on_report=on_report, interval=interval)

    # Finding

    def find_relevant_skills(self, query: str, limit: int = 5, threshold: float | None = None) -> FoundSkills:
        """The skills that fit a request, the best first, at most `limit`, none below `threshold`.

        Where the model fails, a warning is logged and keywords answer. Raises LanceSearchError where the store fails.
        """
        check_question(query, limit)
        started = time.perf_counter()
        contents, ranker = self._current()
        read = time.perf_counter()
        vector, scale, failure = self._query_vector(query, contents)
        embedded_at = time.perf_counter()
        found = answer(Question(query, vector, scale, failure), contents, ranker, limit=limit, threshold=threshold)
        ended = time.perf_counter()
        return replace(
            found,
            timings={
                "read_ms": (read - started) * 1000,
                "embed_ms": (embedded_at - read) * 1000,
                "rank_ms": (ended - embedded_at) * 1000,
                "total_ms": (ended - started) * 1000,
            },
        )

    def get_embedding(self, skill: Skill | Mapping[str, Any]) -> Vector | None:
        """The vector of a skill's name, description and tags by the default model; None where it fails (a warning).

        No value of it is zero: what an 8-bit model rounds to nothing is given as next to nothing.
        """
        rows = embedded([head_text(Skill.of(skill))], self._model.usable())
        return None if rows is None else np.where(rows[0] == 0, NEXT_TO_NOTHING, rows[0])

    def list_skills(self) -> list[Skill]:
        """Every indexed skill, by id."""
        return list(self._current()[0].skills)

    def records(self) -> list[VectorRecord]:
        """Every indexed skill as a record, by id: the text that was embedded, and its vector where it has one."""
        contents = self._current()[0]
        return [
            VectorRecord(
                one.id, "skills", row if row.any() else None, {"name": one.name}, head_text(one), contents.model
            )
            for one, row in zip(contents.skills, contents.heads, strict=True)
        ]

    def get_skill(self, skill: str) -> Skill:
        """The skill with that id, folder or name, with its body. Raises NotFound; InvalidArgument for a shared name."""
        return whole_skill(skill, self._current()[0])

    def close(self) -> None:
        """Let go of the files. A change of the model that is under way is taken up by the next process."""
        with self._lock:
            self._closed = True
            if self._table is not None:
                self._table.close()
            self._model.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # The model

    def vectors_held(self) -> CollectionStatus | None:
        """How many vectors of skills and their passages there are, and which model made them; None where none are."""
        return held(self._current()[0])

    def bring_over(self, target: EmbeddingProvider, embedded: Callable[[int], None]) -> None:
        """Give every skill the vectors of this model; see `HoldsVectors.bring_over`. The old ones answer meanwhile."""
        reembed(self._opened(), target, embedded)

    def _scanner(self, table: SkillTable) -> EmbeddingProvider | None:
        """What embeds the skills of a scan: the default, for which everything else is embedded again if need be."""
        default = self._model.usable()
        if default is None or table.model in ("", default.id):
            return default
        try:
            reembed(table, default)
        except EmbeddingError as error:
            log.warning("the new model cannot embed, the old one goes on answering: %s", error)
            return self._model.for_model(table.model)
        return default

    def _writer(self, table: SkillTable) -> EmbeddingProvider | None:
        """What embeds a new skill: the model of the others, or the default where that is gone."""
        default = self._model.usable()
        if default is None or table.model in ("", default.id):
            return default
        try:
            return self._model.for_model(table.model)
        except EmbeddingError:
            reembed(table, default)
            return default

    def _query_vector(self, query: str, contents: Contents) -> tuple[Vector | None, Scale | None, HomingError | None]:
        """The vector of a query and how its cosines read; nothing where embedding is off, and the error of a model."""
        try:
            default = self._model.embedder()
            if default is None or not contents.skills:
                return None, None, None
            self._follow(contents, default)
            embedder = self._model.for_model(contents.model)
            vector = embedder.embed([query], kind="query")[0]
        except EmbeddingError as error:
            log.warning("embedding model is not available, answering by keywords: %s", error)
            return None, None, error
        return (vector, embedder.scale, None) if contents.embedded else (None, None, None)

    def _follow(self, contents: Contents, default: EmbeddingProvider) -> None:
        """Embed again behind the scenes where another model is the default by now, or where vectors are missing.

        Meanwhile the vectors that are there go on answering.
        """
        if contents.embedded == len(contents.skills) and contents.model == default.id:
            return
        with self._lock:
            if time.monotonic() < self._next_try or (self._following is not None and self._following.is_alive()):
                return
            self._next_try = time.monotonic() + TRY_AGAIN
            self._following = threading.Thread(
                target=self._change_over, args=(default,), name="homing-skills-reembed", daemon=True
            )
            self._following.start()

    def _change_over(self, embedder: EmbeddingProvider) -> None:
        try:
            reembed(self._opened(), embedder)
        except Exception as error:
            # Whatever a model or a database that is being closed raises: the next question, or the next scan, tries
            # again, and nothing was changed.
            if not self._closed:
                log.warning("the skills keep their vectors for now: %s", error)

    # The table

    def _opened(self) -> SkillTable:
        with self._lock:
            if self._table is None:
                embedder = self._model.usable()
                try:
                    self._data.mkdir(parents=True, exist_ok=True)
                    self._table = SkillTable(
                        self._data / FOLDER,
                        "" if embedder is None else embedder.id,
                        None if embedder is None else embedder.dimensions,
                    )
                except (StoreError, OSError) as error:
                    raise _unreachable(error) from error
                log.info("LanceDB initialized with skills table" if self._table.created else "LanceDB opened")
            return self._table

    def _current(self) -> tuple[Contents, Ranker]:
        """Everything that is indexed as of now, from memory where nothing changed."""
        table = self._opened()
        try:
            version = table.version
            with self._lock:
                if self._held is None or self._held[0].version != version:
                    contents = table.read()
                    self._held = (contents, ranker_of(contents))
                return self._held
        except StoreError as error:
            raise _unreachable(error) from error


def _unreachable(error: Exception) -> LanceSearchError:
    cause = error.message if isinstance(error, HomingError) else str(error)
    return LanceSearchError(f"LanceDB connection failed: {cause}", details={"cause": getattr(error, "code", "OS")})


def _noted(skill: Skill) -> Skill:
    known = {
        "name": skill.name,
        "description": skill.description,
        "tags": list(skill.tags),
        "path": skill.path,
        "indexedAt": now(),
    }
    return replace(skill, metadata={**skill.metadata, **known})


def _key(skill: Skill, notes: Mapping[str, Mapping[str, Any]]) -> str:
    """The id of a skill: its folder; for one without a folder, that of the only skill of this name, or the name."""
    if skill.path:
        return os.path.abspath(skill.path)
    same = [key for key, note in notes.items() if note.get("name") == skill.name]
    return same[0] if len(same) == 1 else skill.name
