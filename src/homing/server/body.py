"""What requests and answers are made of: strict on the way in, complete on the way out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from homing.channels.problems import NO_NUL, NOT_BLANK
from homing.text.readable import readable

Query = Annotated[
    str, Field(min_length=1, max_length=10_000, pattern=NOT_BLANK, description="A question, in Chinese or English.")
]
Limit = Annotated[int, Field(ge=1, le=100, description="How many hits at most.")]
Name = Annotated[str, Field(min_length=1, max_length=1_000, pattern=NO_NUL)]


WHOLE = (int, int | None)


class Body(BaseModel):
    """A request: unknown fields are refused, and a number is a number, not a text that looks like one."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

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
        field = cls.model_fields.get(name)
        return isinstance(value, float) and value.is_integer() and field is not None and field.annotation in WHOLE


class Answer(BaseModel):
    """An answer: every field is always there, and every text can be written as UTF-8."""

    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True)

    @model_validator(mode="before")
    @classmethod
    def _make_readable(cls, data: Any) -> Any:
        return readable(data)
