"""`/memory`: remember, recall, forget."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi import Query as Parameter
from pydantic import Field

from homing.channels.problems import EMPTY_OR_NO_NUL, NO_NUL, NOT_BLANK
from homing.errors import NotFound
from homing.memory import Entry
from homing.records import Mode
from homing.server.access import Reading, Writing
from homing.server.body import Answer, Body, Limit, Name, Query
from homing.server.found import FoundGroup, group_of

router = APIRouter(prefix="/memory", tags=["memory"])

Collection = Literal["knowledge", "observation", "reflection", "learning"]
Word = Annotated[str, Field(max_length=1_000, pattern=EMPTY_OR_NO_NUL)]
Tag = Annotated[str, Field(min_length=1, max_length=200, pattern=NO_NUL)]
Text = Annotated[str, Field(min_length=1, max_length=1_000_000, pattern=NOT_BLANK, examples=["用户不吃辣，对花生过敏"])]


class Remember(Body):
    """A text to remember; with an id it replaces what has that id."""

    text: Text
    collection: Collection = Field("knowledge", examples=["observation"])
    id: Name | None = Field(None, examples=["allergies"])
    session_key: Word = Field("", examples=["s1"])
    category: Word = ""
    tags: list[Tag] = Field([], max_length=100, examples=[["food"]])


class Recall(Body):
    """A question to what is remembered."""

    query: Query = Field(examples=["点菜要注意什么"])
    collections: list[Collection] = Field([], description="None means all.", examples=[["observation"]])
    session_key: Word | None = Field(None, description="Only what belongs to this session.", examples=["s1"])
    limit: Limit = Field(5, examples=[5])
    max_distance: float = Field(0.0, ge=0, le=2, description="Leave out what is farther; 0 is off.", examples=[0.6])
    mode: Mode = Field("hybrid", examples=["hybrid"])


class Remembered(Answer):
    """Something remembered."""

    id: str = Field(examples=["allergies"])
    collection: str = Field(examples=["observation"])
    text: str
    session_key: str
    category: str
    tags: list[str]
    metadata: dict[str, Any]
    created: float
    updated: float


class Memory(Answer):
    """How much is remembered, how much waits to be embedded, and the latest entries."""

    counts: dict[str, int] = Field(examples=[{"knowledge": 3, "observation": 1}])
    waiting: int
    entries: list[Remembered]


class Forgotten(Answer):
    """How many entries were forgotten."""

    forgotten: int


@router.post("/remember", status_code=201)
def remember(body: Remember, caller: Writing) -> Remembered:
    """Remember a text. It is durable when this answers; its vector follows in the background."""
    return _described(
        caller.app.memory.remember(
            body.collection,
            body.text,
            entry_id=body.id,
            session_key=body.session_key,
            category=body.category,
            tags=tuple(body.tags),
        )
    )


@router.post("/recall")
def recall(body: Recall, caller: Reading) -> FoundGroup:
    """What a question is about, the nearest first."""
    caller.service.log_query(body.query)
    found = caller.app.memory.recall(
        body.query,
        limit=body.limit,
        collections=tuple(dict.fromkeys(body.collections)),
        session_key=body.session_key,
        max_distance=body.max_distance,
        mode=body.mode,
    )
    return caller.service.metrics.searched(group_of("memory", body.query, found))


@router.get("")
def list_remembered(
    caller: Reading,
    collection: Collection | None = None,
    session_key: Annotated[str | None, Parameter(max_length=1_000, pattern=EMPTY_OR_NO_NUL)] = None,
    limit: Annotated[int, Parameter(ge=1, le=1000)] = 50,
    offset: Annotated[int, Parameter(ge=0, le=10_000)] = 0,
) -> Memory:
    """What is remembered, the latest first; of all collections together where none is named."""
    memory = caller.app.memory
    names = memory.collections if collection is None else (collection,)
    found = [one for name in names for one in memory.list(name, session_key=session_key, limit=limit + offset)]
    found.sort(key=lambda one: (-one.created, one.id))
    return Memory(
        counts={name: memory.count(name) for name in memory.collections},
        waiting=caller.app.engine.work.waiting(),
        entries=[_described(one) for one in found[offset : offset + limit]],
    )


@router.delete("/{entry_id:name}")
def forget(entry_id: str, caller: Writing, collection: Collection | None = None) -> Forgotten:
    """Forget an entry, in one collection or in whichever has it."""
    memory = caller.app.memory
    names = memory.collections if collection is None else (collection,)
    forgotten = sum(memory.forget(name, [entry_id]) for name in names)
    if not forgotten:
        raise NotFound(f"nothing with the id {entry_id!r} is remembered; GET /memory lists what is")
    return Forgotten(forgotten=forgotten)


def _described(entry: Entry) -> Remembered:
    return Remembered(
        id=entry.id,
        collection=entry.collection,
        text=entry.text,
        session_key=entry.session_key,
        category=entry.category,
        tags=list(entry.tags),
        metadata=dict(entry.metadata),
        created=entry.created,
        updated=entry.updated,
    )
