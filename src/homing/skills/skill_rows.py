"""Skills as rows of LanceDB tables and back.

skills      id, name, description, tags, vector, metadata (JSON)
passages    id, skill, content, number, text, terms, counts, vector

Number 0 of a skill's passages holds the terms of its name, description and tags; the others are the passages of its
body. `content` names the text that a passage was cut from, so that none outlives a change of its skill unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from homing.embedders.provider import EmbeddingProvider
from homing.records import Metadata
from homing.skills.skill import Skill
from homing.skills.terms import Terms
from homing.stores.arguments import is_encodable
from homing.stores.lance.engine import ArrowSchema, ArrowTable, arrow
from homing.stores.lance.rows import VECTOR, matrix_of, space_of, vector_field
from homing.stores.lance.table import key_field
from homing.vectors import Matrix, Vector


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of text with its terms and, where it has one, its vector."""

    text: str
    terms: Terms
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class SkillRow:
    """A skill as it is kept. `content` names the text it was made from; `head` is its name, description and tags."""

    skill: Skill
    content: str
    head: Passage
    body: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True)
class Contents:
    """Everything in the table as of one version; rows and passages in the order of the positions that a ranking uses.

    `owners` gives for each passage the position of its skill, ascending; `vectors` has the rows of all skills and then
    of all passages, so that one product compares a query with everything.
    """

    version: int
    model: str
    skills: tuple[Skill, ...]
    contents: tuple[str, ...]
    head_terms: tuple[Terms, ...]
    texts: tuple[str, ...]
    passage_terms: tuple[Terms, ...]
    owners: npt.NDArray[np.int32]
    vectors: Matrix
    embedded: int = field(init=False)
    """How many skills have a vector."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "embedded", int(self.heads.any(axis=1).sum()))

    @property
    def heads(self) -> Matrix:
        """A row for each skill, zero where it has no vector."""
        return self.vectors[: len(self.skills)]

    @property
    def passages(self) -> Matrix:
        """A row for each passage."""
        return self.vectors[len(self.skills) :]


def skills_schema(model: str, dimensions: int) -> ArrowSchema:
    """The columns of `skills`."""
    pa = arrow()
    return pa.schema(
        [
            key_field(),
            pa.field("name", pa.string(), nullable=False),
            pa.field("description", pa.string(), nullable=False),
            pa.field("tags", pa.list_(pa.string()), nullable=False),
            vector_field(model, dimensions),
            pa.field("metadata", pa.string(), nullable=False),
        ]
    )


def passages_schema(model: str, dimensions: int) -> ArrowSchema:
    """The columns of `passages`."""
    pa = arrow()
    return pa.schema(
        [
            key_field(),
            pa.field("skill", pa.string(), nullable=False),
            pa.field("content", pa.string(), nullable=False),
            pa.field("number", pa.int32(), nullable=False),
            pa.field("text", pa.string(), nullable=False),
            pa.field("terms", pa.list_(pa.uint64()), nullable=False),
            pa.field("counts", pa.list_(pa.uint16()), nullable=False),
            vector_field(model, dimensions),
        ]
    )


def skill_rows(rows: Sequence[SkillRow], schema: ArrowSchema) -> ArrowTable:
    """Skills as rows of `skills`."""
    columns = {
        "id": [row.skill.id for row in rows],
        "name": [row.skill.name for row in rows],
        "description": [row.skill.description for row in rows],
        "tags": [list(row.skill.tags) for row in rows],
        VECTOR: _vectors([row.head.vector for row in rows], schema.field(VECTOR).type.list_size),
        "metadata": [_json({**row.skill.metadata, "content": row.content}) for row in rows],
    }
    return arrow().table(columns, schema=schema)


def passage_rows(rows: Sequence[SkillRow], schema: ArrowSchema) -> ArrowTable:
    """Skills as rows of `passages`."""
    pa = arrow()
    flat = [
        (row, number, passage)
        for row in rows
        # The vector of the head is in `skills`.
        for number, passage in enumerate((Passage("", row.head.terms), *row.body))
    ]
    passages = [passage for _, _, passage in flat]
    columns = {
        "id": [f"{row.skill.id}#{number}" for row, number, _ in flat],
        "skill": [row.skill.id for row, _, _ in flat],
        "content": [row.content for row, _, _ in flat],
        "number": pa.array([number for _, number, _ in flat], pa.int32()),
        "text": [passage.text for passage in passages],
        "terms": _lists([passage.terms.hashes for passage in passages], pa.uint64()),
        "counts": _lists([passage.terms.counts for passage in passages], pa.uint16()),
        VECTOR: _vectors([passage.vector for passage in passages], schema.field(VECTOR).type.list_size),
    }
    return pa.table(columns, schema=schema)


def contents_of(version: int, skills: ArrowTable, passages: ArrowTable) -> Contents:
    """Both tables, joined."""
    rows = skills.drop_columns([VECTOR]).to_pylist()
    # An id that is there twice (written around us) is one skill.
    first: dict[str, int] = {}
    for at, row in enumerate(rows):
        first.setdefault(row["id"], at)
    order = [first[key] for key in sorted(first)]
    found = [_skill_of(rows[at]) for at in order]
    contents = [skill.metadata["content"] for skill in found]
    position = {skill.id: at for at, skill in enumerate(found)}
    keys = zip(
        passages["skill"].to_pylist(), passages["content"].to_pylist(), passages["number"].to_pylist(), strict=True
    )
    vouched = {
        (position[skill], number): at
        for at, (skill, content, number) in enumerate(keys)
        if skill in position and contents[position[skill]] == content
    }
    terms = _terms(passages)
    nothing = Terms(np.empty(0, np.uint64), np.empty(0, np.uint16))
    heads = [terms[vouched[at, 0]] if (at, 0) in vouched else nothing for at in range(len(found))]
    body = sorted(key for key in vouched if key[1] > 0)
    picked = [vouched[key] for key in body]
    texts = passages["text"].to_pylist()
    space, other = space_of(skills.schema), space_of(passages.schema)
    same = space is not None and other is not None and space.model == other.model
    return Contents(
        version=version,
        model="" if space is None else space.model,
        skills=tuple(found),
        contents=tuple(contents),
        head_terms=tuple(heads),
        texts=tuple(texts[at] for at in picked),
        passage_terms=tuple(terms[at] for at in picked),
        owners=np.array([key[0] for key in body], np.int32),
        # Between the two commits of a change of the model the passages are ahead for a moment.
        vectors=_stacked(_matrix(skills)[order], _matrix(passages)[picked] if same else len(picked)),
    )


def _stacked(heads: Matrix, passages: Matrix | int) -> Matrix:
    """Heads and, below them, passages; or as many empty rows."""
    below = np.zeros((passages, heads.shape[1]), np.float32) if isinstance(passages, int) else passages
    return np.concatenate([heads, below])


def in_memory(rows: Sequence[SkillRow], embedder: EmbeddingProvider) -> Contents:
    """Rows as they would be read from the tables."""
    body = [(at, passage) for at, row in enumerate(rows) for passage in row.body]

    def matrix(vectors: list[Vector | None]) -> Matrix:
        wide = np.zeros((len(vectors), embedder.dimensions), np.float32)
        for at, vector in enumerate(vectors):
            wide[at] = 0 if vector is None else vector
        return wide

    return Contents(
        version=0,
        model=embedder.id,
        skills=tuple(row.skill for row in rows),
        contents=tuple(row.content for row in rows),
        head_terms=tuple(row.head.terms for row in rows),
        texts=tuple(passage.text for _, passage in body),
        passage_terms=tuple(passage.terms for _, passage in body),
        owners=np.array([at for at, _ in body], np.int32),
        vectors=matrix([row.head.vector for row in rows] + [passage.vector for _, passage in body]),
    )


def rows_of(contents: Contents) -> Iterator[SkillRow]:
    """Contents as rows without vectors."""
    body: dict[int, list[Passage]] = {}
    for at, owner in enumerate(contents.owners.tolist()):
        body.setdefault(owner, []).append(Passage(contents.texts[at], contents.passage_terms[at]))
    for at, skill in enumerate(contents.skills):
        yield SkillRow(skill, contents.contents[at], Passage("", contents.head_terms[at]), tuple(body.get(at, ())))


def _skill_of(row: dict[str, Any]) -> Skill:
    metadata = json.loads(row["metadata"])
    # The id is where a skill is found; the path is how it was given.
    return Skill(row["name"], row["description"], tuple(row["tags"]), row["id"], "", metadata)


def _terms(passages: ArrowTable) -> list[Terms]:
    hashes, ends = _flat(passages["terms"])
    counts, _ = _flat(passages["counts"])
    starts = [0, *ends[:-1]] if ends else []
    return [Terms(hashes[start:end], counts[start:end]) for start, end in zip(starts, ends, strict=True)]


def _flat(column: Any) -> tuple[Any, list[int]]:
    whole = column.combine_chunks()
    offsets = whole.offsets.to_numpy()
    return whole.values.to_numpy(zero_copy_only=False)[offsets[0] :] if len(whole) else np.empty(0), (
        (offsets[1:] - offsets[0]).tolist() if len(whole) else []
    )


def _lists(values: Sequence[Any], kind: Any) -> Any:
    pa = arrow()
    offsets = np.cumsum([0, *(len(one) for one in values)], dtype=np.int32)
    flat = np.concatenate(values) if values else np.empty(0)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(flat, kind))


def _vectors(vectors: Sequence[Vector | None], width: int) -> Any:
    pa = arrow()
    wide = np.zeros((len(vectors), width), np.float32)
    for at, vector in enumerate(vectors):
        if vector is not None:
            wide[at] = vector
    missing = pa.array([vector is None for vector in vectors], pa.bool_())
    return pa.FixedSizeListArray.from_arrays(pa.array(wide.reshape(-1)), width, mask=missing)


def _matrix(rows: ArrowTable) -> Matrix:
    """The vectors, zero where a row has none."""
    column = rows[VECTOR].combine_chunks()
    wide = np.zeros((len(rows), column.type.list_size), np.float32)
    wide[column.is_valid().to_numpy(zero_copy_only=False)] = matrix_of(rows)
    return wide


def _json(metadata: Metadata) -> str:
    # Chinese takes half the room unescaped; half a surrogate pair survives only escaped.
    found = json.dumps(dict(metadata), ensure_ascii=False, separators=(",", ":"), default=str)
    return found if is_encodable(found) else json.dumps(dict(metadata), separators=(",", ":"), default=str)
