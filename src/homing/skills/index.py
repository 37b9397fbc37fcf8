"""The index of skills: two collections of an engine, written together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from homing.database import Transaction
from homing.engine import Engine
from homing.engine.work import IMPORT, INTERACTIVE
from homing.records import Metadata, VectorRecord
from homing.skills.indexing import (
    HEADS,
    MAX_PASSAGES,
    NAME_KEY,
    PASSAGES,
    head_record,
    name_key,
    owner_of,
    passage_id,
    passage_ids,
    passage_records,
    skill_of,
)
from homing.skills.skill import Skill
from homing.stores.store import SearchOptions

PAGE = 1_000
"""Records read at once."""


class SkillIndex:
    """Skills in a store. Safe to call from several threads and processes. Raises StoreError."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.store = engine.store
        self._heads = engine.collection(HEADS)
        self._passages = engine.collection(PASSAGES)

    def put(self, skills: Sequence[tuple[Skill, str]], *, imported: bool = False) -> None:
        """Keep skills with what names their content, each replacing the one with its id; found by words at once."""
        heads = [head_record(skill, content) for skill, content in skills]
        passages = {skill.id: passage_records(skill) for skill, _ in skills}
        stale = [one for skill, found in passages.items() for one in passage_ids([skill], len(found))]
        priority = IMPORT if imported else INTERACTIVE

        def work(transaction: Transaction) -> None:
            self._passages.delete(stale, transaction)
            self._passages.write([one for found in passages.values() for one in found], transaction, priority=priority)
            self._heads.write(heads, transaction, priority=priority)

        if heads:
            self.engine.database.write(work, self._heads.scope)
            self._heads.notify()

    def remove(self, ids: Sequence[str]) -> int:
        """Remove skills; returns how many there were."""

        def work(transaction: Transaction) -> int:
            self._passages.delete(passage_ids(ids), transaction)
            return self._heads.delete(ids, transaction)

        return self.engine.database.write(work, self._heads.scope) if ids else 0

    @property
    def model(self) -> str:
        """The model that serves all texts of the skills; empty where that is none, or not one alone."""
        heads, passages = self.store.model_of(HEADS), self.store.model_of(PASSAGES)
        return heads if passages in ("", heads) else ""

    def size(self) -> int:
        """How many skills there are."""
        return next((one.records for one in self.store.collections() if one.name == HEADS), 0)

    def heads(self, ids: Sequence[str] | None = None, *, embeddings: bool = False) -> list[VectorRecord]:
        """The heads of these skills, or of all, by id."""
        wanted = self.store.ids(HEADS) if ids is None else ids
        return [
            head
            for start in range(0, len(wanted), PAGE)
            for head in self.store.get(HEADS, wanted[start : start + PAGE], embeddings=embeddings)
        ]

    def skills(self, ids: Sequence[str] | None = None) -> list[Skill]:
        """These skills, or all, without their bodies."""
        return [skill_of(head) for head in self.heads(ids)]

    def notes(self) -> dict[str, Metadata]:
        """What is known of every skill, by id: what a scan compares with."""
        return {head.id: head.metadata for head in self.heads()}

    def named(self, name: str) -> list[str]:
        """The ids of the skills with exactly this name."""
        return self.store.ids(HEADS, SearchOptions({"name": name}))

    def called(self, query: str) -> list[str]:
        """The ids of the skills whose name a query is, however it is written."""
        return self.store.ids(HEADS, SearchOptions({NAME_KEY: name_key(query)}))

    def existing(self, ids: Sequence[str]) -> list[str]:
        """Those of these ids that are a skill's."""
        return list(self.store.texts(HEADS, ids)) if ids else []

    def find(self, wanted: str) -> list[str]:
        """The ids that somebody means by an id, a folder or a name."""
        return self.existing([wanted]) or self.existing([os.path.abspath(wanted)]) or self.named(wanted)

    def passages(self, skill: str) -> list[str]:
        """The passages of a skill's body, in order."""
        ids = [passage_id(skill, number) for number in range(MAX_PASSAGES)]
        return [one.text for one in self.store.get(PASSAGES, ids, embeddings=False)]

    def incomplete(self, model: str) -> set[str]:
        """The skills of which some text has no vector of this model."""
        return {*self._missing(HEADS, model), *(owner_of(one) for one in self._missing(PASSAGES, model))}

    def lacking(self, ids: Sequence[str], model: str) -> set[str]:
        """Which of these skills lack a vector of this model."""
        heads = self.store.texts(HEADS, ids, lacking=model)
        return {*heads, *(owner_of(one) for one in self.store.texts(PASSAGES, passage_ids(ids), lacking=model))}

    def _missing(self, collection: str, model: str) -> Iterable[str]:
        after = ""
        while page := self.store.missing(collection, model, after=after, limit=PAGE):
            yield from page
            after = page[-1]
