"""Gives every skill the vectors of another model, while those of the old one go on answering.

All vectors are made first; then the tables change over, in one commit each. A process that dies before that has changed
nothing, and what it embedded is in the embedder's cache: doing it again costs little.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from homing.embedders.provider import EmbeddingProvider
from homing.skills.skill import head_text
from homing.skills.skill_rows import SkillRow, rows_of
from homing.skills.skill_table import SkillTable
from homing.vectors import Vector

log = logging.getLogger(__name__)

BATCH = 512


def reembed(table: SkillTable, embedder: EmbeddingProvider) -> int:
    """Embed everything in a table with this model and change over; returns how many skills there are.

    Raises EmbeddingError, and changes nothing then.
    """
    vectors: dict[str, Vector] = {}
    _embed(list(rows_of(table.read())), embedder, vectors)
    with table.writing():
        rows = list(rows_of(table.read()))
        # What was written meanwhile is little, and nobody writes now.
        _embed(rows, embedder, vectors)
        made = [_with_vectors(row, vectors, embedder.id) for row in rows]
        table.replace_all(made, embedder.id, embedder.dimensions)
    log.info("%d skills now answer with %s", len(made), embedder.id)
    return len(made)


def _embed(rows: Sequence[SkillRow], embedder: EmbeddingProvider, vectors: dict[str, Vector]) -> None:
    texts = [text for row in rows for text in (head_text(row.skill), *(passage.text for passage in row.body))]
    missing = list(dict.fromkeys(text for text in texts if text not in vectors))
    for start in range(0, len(missing), BATCH):
        part = missing[start : start + BATCH]
        vectors.update(zip(part, embedder.embed(part), strict=True))


def _with_vectors(row: SkillRow, vectors: dict[str, Vector], model: str) -> SkillRow:
    return SkillRow(
        replace(row.skill, metadata={**row.skill.metadata, "model": model}),
        row.content,
        replace(row.head, vector=vectors[head_text(row.skill)]),
        tuple(replace(passage, vector=vectors[passage.text]) for passage in row.body),
    )
