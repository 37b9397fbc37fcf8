"""What a home consists of: devices, the commands they take, the rooms they stand in."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

MAX_NAME = 10_000
"""Characters: what is longer is no name that anybody says, and takes seconds to read."""


def _as_tuple(value: Any) -> Any:
    """None is nothing, one text is one entry: home exports write both."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value


Texts = Annotated[tuple[Annotated[str, Field(max_length=MAX_NAME)], ...], BeforeValidator(_as_tuple)]


class ValueRange(BaseModel):
    """The numbers a command takes; a missing bound is open."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    minimum: float | None = Field(None, validation_alias=AliasChoices("minimum", "min"))
    maximum: float | None = Field(None, validation_alias=AliasChoices("maximum", "max"))
    step: float | None = None

    def __str__(self) -> str:
        low = "-∞" if self.minimum is None else f"{self.minimum:g}"
        high = "∞" if self.maximum is None else f"{self.maximum:g}"
        return f"{low}–{high}"


class ValueOption(BaseModel):
    """One of the values a command takes, with the words people use for it."""

    model_config = ConfigDict(frozen=True)

    value: str | int | float | bool
    description: str = ""


class CommandSpec(BaseModel):
    """Something a device can be told: `description` is what a spoken action is compared with.

    `unit` may be one text or several; `value_range` may be written `[0, 100]` or `{"min": 0, "max": 100}`; `value_list`
    may hold plain values, `{"value", "description"}` pairs, or be a mapping from value to description.
    """

    model_config = ConfigDict(frozen=True)

    id: str = Field(min_length=1)
    description: str = ""
    type: str | None = None
    value_range: ValueRange | None = None
    value_list: tuple[ValueOption, ...] = ()
    unit: Texts = ()
    synonyms: Texts = ()

    @model_validator(mode="before")
    @classmethod
    def _read_forms(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        read = dict(data)
        bounds = read.get("value_range")
        if isinstance(bounds, list | tuple):
            read["value_range"] = dict(zip(("minimum", "maximum", "step"), bounds, strict=False)) or None
        elif isinstance(bounds, Mapping) and "unit" in bounds:
            read.setdefault("unit", bounds["unit"])
        options = read.get("value_list")
        if options is None:
            read["value_list"] = ()
        elif isinstance(options, Mapping):
            read["value_list"] = [{"value": value, "description": str(text or "")} for value, text in options.items()]
        else:
            read["value_list"] = [
                option if isinstance(option, Mapping | ValueOption) else {"value": option} for option in options
            ]
        return read


class Device(BaseModel):
    """One thing in a home that can be spoken of; with `members` it is a group and stands for them."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    id: str = Field(min_length=1)
    name: str = Field(min_length=1, max_length=MAX_NAME)
    type: str = Field("", validation_alias=AliasChoices("type", "domain", "category"))
    room: str | None = Field(None, validation_alias=AliasChoices("room", "area"))
    floor: str | None = None
    aliases: Texts = ()
    device_class: str | None = None
    commands: tuple[CommandSpec, ...] = ()
    members: Texts = ()
    state: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Everything people call it, the name first."""
        return (self.name, *self.aliases)

    @property
    def content_hash(self) -> str:
        """Changes when anything but the state does: what is indexed under one hash need not be indexed again."""
        return hashlib.sha256(self.model_dump_json(exclude={"state"}).encode()).hexdigest()


class Room(BaseModel):
    """A room and where it lies."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(min_length=1, max_length=MAX_NAME)
    floor: str | None = None
    aliases: Texts = ()
