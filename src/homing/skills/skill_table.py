"""Skills in LanceDB: the table `skills`, as the specification has it, and beside it the table `passages`.

Passages are written before the skill they belong to and name the content they were cut from. A skill whose row is there
is therefore whole, passages that no row vouches for are not read, and one number, the version of `skills`, tells
whether anything changed. The column `vector` names the model that made it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from homing.errors import ModelMismatch
from homing.records import Metadata
from homing.skills.skill_rows import (
    Contents,
    SkillRow,
    contents_of,
    passage_rows,
    passages_schema,
    rows_of,
    skill_rows,
    skills_schema,
)
from homing.stores.lance.database import Database
from homing.stores.lance.faults import translated
from homing.stores.lance.indexes import key_index
from homing.stores.lance.rows import VECTOR, space_of
from homing.stores.lance.table import Table, any_of
from homing.stores.lance.upkeep import Upkeep

SKILLS = "skills"
PASSAGES = "passages"
WIDTH = 384
"""Width of the vector column until a model says another."""


class SkillTable:
    """The two tables of a folder, shared with other threads and processes. Raises StoreError."""

    def __init__(self, folder: Path, model: str, dimensions: int | None) -> None:
        self.database = Database(folder)
        self._upkeep = Upkeep([key_index(from_rows=5_000)])
        found = self.database.table(SKILLS)
        self.created = found is None
        if found is None or self.database.table(PASSAGES) is None:
            with self.database.writing():
                self._create(model, dimensions or WIDTH)
        self._skills = self._opened(SKILLS)
        self._passages = self._opened(PASSAGES)

    @property
    def version(self) -> int:
        """Changes whenever anything does."""
        return self._skills.version

    @property
    def model(self) -> str:
        """The identity of the model that the vector column is for."""
        space = space_of(self._skills.schema)
        return "" if space is None else space.model

    def notes(self) -> dict[str, Metadata]:
        """The metadata of every skill by id, without vectors: what a scan compares with."""
        with translated(self.database.address):
            rows = self._skills.handle.search().select(["id", "metadata"]).limit(None).to_arrow()
        return {row["id"]: json.loads(row["metadata"]) for row in rows.to_pylist()}

    def put(self, rows: Sequence[SkillRow], model: str) -> None:
        """Write skills, each replacing the one with its id. Raises ModelMismatch where others have another model."""
        if not rows:
            return
        with self.database.writing():
            self._make_room(rows, model)
            contents = [row.content for row in rows]
            self._passages.upsert(passage_rows(rows, self._passages.schema))
            ids = [row.skill.id for row in rows]
            stale = f"{any_of('skill', ids)} AND NOT {any_of('content', contents)}"
            if self._passages.count(stale):
                self._passages.delete(stale)
            self._skills.upsert(skill_rows(rows, self._skills.schema))
        self._look_after()

    def remove(self, ids: Sequence[str]) -> int:
        """Remove skills; returns how many there were."""
        if not ids:
            return 0
        with self.database.writing():
            self._passages.delete(any_of("skill", list(ids)))
            removed = self._skills.delete(any_of("id", list(ids)))
        self._look_after()
        return removed

    def replace_all(self, rows: Sequence[SkillRow], model: str, dimensions: int) -> None:
        """Put these in the place of everything, for another model. The lock must be held; one commit for each table."""
        schemas = {PASSAGES: passages_schema(model, dimensions), SKILLS: skills_schema(model, dimensions)}
        made = {PASSAGES: passage_rows(rows, schemas[PASSAGES]), SKILLS: skill_rows(rows, schemas[SKILLS])}
        for table in (self._passages, self._skills):
            with translated(self.database.address):
                table.handle.add(made[table.name], mode="overwrite", on_bad_vectors="null")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock for `replace_all`."""
        with self.database.writing():
            yield

    def read(self) -> Contents:
        """Everything."""
        with translated(self.database.address):
            version = self._skills.version
            skills = self._skills.handle.search().limit(None).to_arrow()
            passages = self._passages.handle.search().limit(None).to_arrow()
        return contents_of(version, skills, passages)

    def close(self) -> None:
        """Let go of the folder."""
        self._upkeep.close()
        self.database.close()

    def _create(self, model: str, dimensions: int) -> None:
        # The passages first: whoever sees `skills` may count on both.
        for name, schema in (
            (PASSAGES, passages_schema(model, dimensions)),
            (SKILLS, skills_schema(model, dimensions)),
        ):
            if self.database.table(name) is None:
                self.database.create(name, schema)

    def _opened(self, name: str) -> Table:
        table = self.database.table(name)
        assert table is not None
        return table

    def _make_room(self, rows: Sequence[SkillRow], model: str) -> None:
        width = next((len(row.head.vector) for row in rows if row.head.vector is not None), None)
        space = space_of(self._skills.schema)
        if width is None or (space is not None and (space.model, space.dimensions) == (model, width)):
            return
        if self._skills.count(f"{VECTOR} IS NOT NULL") or self._passages.count(f"{VECTOR} IS NOT NULL"):
            raise ModelMismatch(
                f"the skills in {self.database.address} were embedded by {space.model if space else 'another model'}, "
                f"not by {model}; scan again, or go back to that model",
                details={"expected": space.model if space else "", "actual": model},
            )
        self.replace_all(list(rows_of(self.read())), model, width)

    def _look_after(self) -> None:
        for table in (self._passages, self._skills):
            self._upkeep.wrote(table)
