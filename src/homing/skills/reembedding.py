"""Gives every skill the vectors of another model, while those of the old one go on answering.

All vectors are made first; then the tables change over, in one commit each. A process that dies before that has changed
nothing, and what it embedded is in the embedder's cache: doing it again costs little.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from homing.embedders.provider import EmbeddingProvider
from homing.models.vector_holder import CollectionStatus
from homing.skills.skill import head_text
from homing.skills.skill_rows import Contents, SkillRow, rows_of
from homing.skills.skill_table import SkillTable
from homing.stores.store import ModelInfo
from homing.vectors import Vector

log = logging.getLogger(__name__)

BATCH = 256


def held(contents: Contents) -> CollectionStatus | None:
    """The vectors of skills and passages that are there; None where there are none."""
    count = int(contents.vectors.any(axis=1).sum())
    if not count:
        return None
    space = ModelInfo(contents.model, contents.vectors.shape[1], count, served=True)
    return CollectionStatus("skills", len(contents.skills), (space,))


def reembed(
    table: SkillTable, embedder: EmbeddingProvider, embedded: Callable[[int], None] = lambda count: None
) -> int:
    """Embed everything in a table with this model and change over; returns how many skills there are.

    `embedded` is told after every batch how many vectors it makes. Raises EmbeddingError, and changes nothing then.
    """
    vectors: dict[str, Vector] = {}
    _embed(list(rows_of(table.read())), embedder, vectors, embedded)
    with table.writing():
        rows = list(rows_of(table.read()))
        # What was written meanwhile is little, and nobody writes now.
        _embed(rows, embedder, vectors, embedded)
        made = [_with_vectors(row, vectors, embedder.id) for row in rows]
        table.replace_all(made, embedder.id, embedder.dimensions)
    log.info("%d skills now answer with %s", len(made), embedder.id)
    return len(made)


def _embed(
    rows: Sequence[SkillRow],
    embedder: EmbeddingProvider,
    vectors: dict[str, Vector],
    embedded: Callable[[int], None],
) -> None:
    texts = [text for row in rows for text in (head_text(row.skill), *(passage.text for passage in row.body))]
    missing = Counter(text for text in texts if text not in vectors)
    listed = list(missing)
    for start in range(0, len(listed), BATCH):
        part = listed[start : start + BATCH]
        vectors.update(zip(part, embedder.embed(part), strict=True))
        embedded(sum(missing[text] for text in part))


def _with_vectors(row: SkillRow, vectors: dict[str, Vector], model: str) -> SkillRow:
    return SkillRow(
        replace(row.skill, metadata={**row.skill.metadata, "model": model}),
        row.content,
        replace(row.head, vector=vectors[head_text(row.skill)]),
        tuple(replace(passage, vector=vectors[passage.text]) for passage in row.body),
    )
