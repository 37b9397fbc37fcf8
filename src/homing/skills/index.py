"""The index of skills: two collections of an engine, for their heads (name, description, tags) and for passages."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterable, Sequence
from itertools import chain

from homing.database import Transaction
from homing.embedders.provider import EmbeddingProvider
from homing.engine import Engine
from homing.engine.work import IMPORT, INTERACTIVE
from homing.errors import EmbeddingError
from homing.records import Metadata, VectorRecord
from homing.skills.skill import Skill, head_text
from homing.stores.store import SearchOptions, missing_pages
from homing.text.folding import fold
from homing.text.paragraphs import paragraphs

log = logging.getLogger(__name__)

PAGE = 1_000
"""Records read at once."""
HEADS = "skills"
"""The collection of the heads. Their metadata is all that is known of a skill, and their ids are the skills'."""
PASSAGES = "skills.passages"
NAME_KEY = "name_key"
"""The metadata that an exact name is found by, however it is written."""
MAX_CHARACTERS = 60_000
"""How much of a body is searched: its beginning, some thirty pages."""
MAX_PASSAGES = 24
MIN_CHARACTERS = 400
"""Characters below which a paragraph is joined with the next: a passage says enough to be recognised by."""
_BETWEEN = re.compile(r"[^\w+#]|_")


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

    def default_model(self) -> EmbeddingProvider | None:
        """The model that new texts are embedded by; None, with a warning, where it cannot be had."""
        try:
            return self.engine.models.provider() if self.engine.models.embeds else None
        except EmbeddingError as error:
            log.warning("embedding model is not available, keywords only: %s", error)
            return None

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
        return chain.from_iterable(missing_pages(self.store, collection, model, PAGE))


def passages_of(body: str) -> list[str]:
    """The passages of a body, in order. A long one is cut after `MAX_CHARACTERS` and `MAX_PASSAGES`."""
    found: list[str] = []
    gathered, searched = "", body[:MAX_CHARACTERS]
    for paragraph in paragraphs(searched) if searched.strip() else ():
        gathered = f"{gathered}\n\n{paragraph.text}" if gathered else paragraph.text
        if len(gathered) >= MIN_CHARACTERS:
            found.append(gathered)
            gathered = ""
            if len(found) == MAX_PASSAGES:
                return found
    return [*found, gathered] if gathered else found


def content_of(skill: Skill) -> str:
    """Names what a skill says, for one that has no file."""
    said = json.dumps([skill.name, skill.description, skill.tags, skill.body])
    return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()


def head_record(skill: Skill, content: str) -> VectorRecord:
    """The head of a skill; `content` names what it was made of."""
    known = {
        "name": skill.name,
        "description": skill.description,
        "tags": list(skill.tags),
        NAME_KEY: name_key(skill.name),
        "content": content,
    }
    # What an author writes may hold dates and the like, which JSON does not know.
    written = json.loads(json.dumps(dict(skill.metadata), default=str))
    return VectorRecord(skill.id, HEADS, None, {**written, **known}, head_text(skill), keywords=head_words(skill))


def passage_records(skill: Skill) -> list[VectorRecord]:
    """The passages of a skill's body."""
    return [
        VectorRecord(passage_id(skill.id, number), PASSAGES, None, {"skill": skill.id}, text)
        for number, text in enumerate(passages_of(skill.body))
    ]


def skill_of(head: VectorRecord) -> Skill:
    """The skill of a head, without its body."""
    known = {key: value for key, value in head.metadata.items() if key != NAME_KEY}
    # The id is where a skill is found; the path in the metadata is how it was given.
    return Skill(known["name"], known["description"], tuple(known["tags"]), head.id, "", known)


def head_words(skill: Skill) -> str:
    """What the keyword leg reads of a head: the name as it is written, too."""
    return f"{skill.name}\n{skill.description}\n{' '.join(skill.tags)}"


def passage_id(skill: str, number: int) -> str:
    """The id of a passage."""
    return f"{skill}#{number}"


def owner_of(passage: str) -> str:
    """The id of the skill that a passage belongs to."""
    return passage.rpartition("#")[0]


def passage_ids(skills: Iterable[str], first: int = 0) -> list[str]:
    """Every id that a passage of these skills can have, from a number on."""
    return [passage_id(skill, number) for skill in skills for number in range(first, MAX_PASSAGES)]


def name_key(text: str) -> str:
    """A name without case, joints and white space: `Git Commit`, `git_commit` and `/git-commit` are one."""
    return _BETWEEN.sub("", fold(text).casefold()) or text
