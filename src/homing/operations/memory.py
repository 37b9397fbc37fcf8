"""What is remembered: remember, recall, list, forget."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from homing.engine.search import cut
from homing.errors import NotFound
from homing.operations.hits import SearchOut, search_out
from homing.operations.models import Input, Limit, Name, Output, Query, Weaker
from homing.operations.operation import Call, Tool, operation
from homing.operations.problems import EMPTY_OR_NO_NUL, NO_NUL, NOT_BLANK
from homing.records import Mode

TAG = "memory"

Collection = Literal["knowledge", "observation", "reflection", "learning"]
Word = Annotated[str, Field(max_length=1_000, pattern=EMPTY_OR_NO_NUL)]
Tag = Annotated[str, Field(min_length=1, max_length=200, pattern=NO_NUL)]
Text = Annotated[str, Field(min_length=1, max_length=1_000_000, pattern=NOT_BLANK, examples=["用户不吃辣，对花生过敏"])]


class Remember(Input):
    """A text to remember; with an id it replaces what has that id."""

    text: Text = Field(description="One thing, in full sentences.")
    collection: Collection = Field(
        "knowledge",
        description="knowledge: facts; observation: what was seen of the user; reflection: what follows from it; "
        "learning: how to do better.",
        examples=["observation"],
    )
    id: Name | None = Field(None, description="Replaces what has this id.", examples=["allergies"])
    session_key: Word = Field(
        "", description="The conversation it belongs to, where it is not for all.", examples=["s1"]
    )
    category: Word = ""
    tags: list[Tag] = Field([], max_length=100, description="Words to sort it by.", examples=[["food"]])


class Recall(Input):
    """A question to what is remembered."""

    query: Query = Field(examples=["点菜要注意什么"])
    collections: list[Collection] = Field([], description="None means all.", examples=[["observation"]])
    session_key: Word | None = Field(None, description="Only what belongs to this session.", examples=["s1"])
    limit: Limit = Field(5, examples=[5])
    max_distance: float = Field(0.0, ge=0, le=2, description="Leave out what is farther; 0 is off.", examples=[0.6])
    mode: Mode = Field("hybrid", examples=["hybrid"])
    weaker: Weaker = False


class MemoryListing(Input):
    """A page of what is remembered, of one collection or of all."""

    collection: Collection | None = None
    session_key: Word | None = None
    limit: int = Field(50, ge=1, le=1000)
    offset: int = Field(0, ge=0, le=10_000)


class Forget(Input):
    """An entry, in one collection or in whichever has it."""

    id: str
    collection: Collection | None = None


class MemoryOut(Output):
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


class Remembered(MemoryOut):
    """What was remembered; until it is `embedded` only its words find it."""

    agents_read = None

    embedded: bool

    def summary(self) -> str:
        """Where it is kept."""
        later = "" if self.embedded else " It is recalled by its words until the embedding model has read it."
        return f"Remembered in {self.collection} as {self.id!r}.{later}"


class MemoryList(Output):
    """How much is remembered, how much waits to be embedded, and the latest entries."""

    counts: dict[str, int] = Field(examples=[{"knowledge": 3, "observation": 1}])
    waiting: int
    entries: list[MemoryOut]


class Forgotten(Output):
    """How many entries were forgotten."""

    forgotten: int


@operation(
    "write",
    http="POST /memory/remember",
    tag=TAG,
    status=201,
    tool=Tool(
        "remember", "Remember something for later conversations. Save what the user wants kept; never save secrets."
    ),
)
def remember(call: Call, asked: Remember) -> Remembered:
    """Remember a text. It is durable when this answers; its vector follows in the background."""
    entry = call.app.memory.remember(
        asked.collection,
        asked.text,
        entry_id=asked.id,
        session_key=asked.session_key,
        category=asked.category,
        tags=tuple(asked.tags),
    )
    return Remembered.of(entry, embedded=call.app.engine.wait(entry.collection, [entry.id], call.patience))


@operation(
    "read",
    http="POST /memory/recall",
    tag=TAG,
    tool=Tool("recall", "Recall what was remembered in earlier conversations: facts, preferences, decisions, lessons."),
)
def recall(call: Call, asked: Recall) -> SearchOut:
    """Find the memories that a question is about, the best first."""
    found = call.app.memory.recall(
        asked.query,
        limit=asked.limit,
        collections=tuple(dict.fromkeys(asked.collections)),
        session_key=asked.session_key,
        max_distance=asked.max_distance,
        mode=asked.mode,
    )
    own_cut = asked.weaker or asked.max_distance
    return search_out("memory", asked.query, found if own_cut else cut(found))


@operation("read", http="GET /memory", tag=TAG)
def list_memories(call: Call, asked: MemoryListing) -> MemoryList:
    """List what is remembered, the latest first. Without a collection, all of them are listed together."""
    memory, reach = call.app.memory, asked.limit + asked.offset
    names = memory.collections if asked.collection is None else (asked.collection,)
    found = [one for name in names for one in memory.list(name, session_key=asked.session_key, limit=reach)]
    found.sort(key=lambda one: (-one.created, one.id))
    return MemoryList(
        counts={name: memory.count(name) for name in memory.collections},
        waiting=call.app.engine.work.waiting(),
        entries=[MemoryOut.of(one) for one in found[asked.offset : reach]],
    )


@operation(
    "write",
    http="DELETE /memory/{id:name}",
    tag=TAG,
    tool=Tool("forget", "Forget something that was remembered, by its id from recall.", destructive=True),
    may_miss=True,
)
def forget(call: Call, asked: Forget) -> Forgotten:
    """Forget an entry, in the collection that is named or in any."""
    memory = call.app.memory
    names = memory.collections if asked.collection is None else (asked.collection,)
    forgotten = sum(memory.forget(name, [asked.id]) for name in names)
    if not forgotten:
        raise NotFound(f"nothing with the id {asked.id!r} is remembered")
    return Forgotten(forgotten=forgotten)
