"""What operations take and give: strict on the way in, complete on the way out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from homing.documents.searching import Offsets
from homing.operations.problems import NO_NUL, NOT_BLANK
from homing.records import Mode
from homing.text.decoding import readable

MAX_NAME = 512
"""Characters of the name of a document or project."""

Query = Annotated[
    str, Field(min_length=1, max_length=10_000, pattern=NOT_BLANK, description="A question, in Chinese or English.")
]
Limit = Annotated[int, Field(ge=1, le=100, description="How many hits at most.")]
Weaker = Annotated[bool, Field(description="Also show the weaker hits that are left out by default.")]
Name = Annotated[str, Field(min_length=1, max_length=1_000, pattern=NO_NUL)]
Project = Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=NO_NUL, examples=["novel"])]
Document = Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=NO_NUL, examples=["ch1"])]
OffsetUnit = Annotated[
    Offsets, Field(description="What offsets count: characters, or UTF-16 units as in a JavaScript string.")
]


def on_channels(**names: str) -> Mapping[str, str]:
    """How desktop apps spell the fields of a model, where it is not simply camelCase."""
    return {"project": "projectId", "document": "documentId", **names}


class Input(BaseModel):
    """A request: unknown fields are refused, and a number is a number, not a text that looks like one."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    channel_names: ClassVar[Mapping[str, str]] = on_channels()

    @model_validator(mode="before")
    @classmethod
    def _take_whole_numbers(cls, data: Any) -> Any:
        """JSON has one kind of number: 5.0 is the integer 5."""
        if not isinstance(data, Mapping):
            return data
        whole = {name: int(value) for name, value in data.items() if cls._is_whole(name, value)}
        return {**data, **whole} if whole else data

    @classmethod
    def _is_whole(cls, name: str, value: Any) -> bool:
        if not (isinstance(value, float) and value.is_integer()):
            return False
        return any(name == (one.alias or own) and _takes_whole(one.annotation) for own, one in cls.model_fields.items())


class Nothing(Input):
    """Nothing to choose."""


class Output(BaseModel):
    """An answer: every field is always there, and every text can be written as UTF-8.

    It can be made of any object that has fields of these names (`of`).
    """

    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True, from_attributes=True)
    channel_names: ClassVar[Mapping[str, str]] = on_channels()
    agents_read: ClassVar[str | None] = ""

    @model_validator(mode="before")
    @classmethod
    def _make_readable(cls, data: Any) -> Any:
        if isinstance(data, cls):
            return data
        if not isinstance(data, Mapping):
            data = {name: _plain(getattr(data, name)) for name in cls.model_fields if hasattr(data, name)}
        return readable(data)

    @classmethod
    def of(cls, found: Any, **more: Any) -> Self:
        """The fields of something, and further ones."""
        own = [name for name in cls.model_fields if name not in more and hasattr(found, name)]
        return cls.model_validate({name: _plain(getattr(found, name)) for name in own} | more)

    def searches(self) -> Iterator[tuple[str, Mode, bool]]:
        """The searches that were answered with this: of what, how, and whether degraded. For who counts them."""
        return iter(())

    def summary(self) -> str:
        """A sentence about this for a model that reads text; nothing in it was written by others."""
        return ""

    def lines(self) -> Sequence[Any]:
        """What a model reads of this, one line each: texts, or data; the field `agents_read`, all of it, or nothing."""
        if self.agents_read is None:
            return []
        found = getattr(self, self.agents_read) if self.agents_read else self
        return found if isinstance(found, list) else [found]


def _takes_whole(annotation: Any) -> bool:
    return annotation is int or any(map(_takes_whole, get_args(annotation)))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value
