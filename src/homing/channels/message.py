"""What every request and every response on a channel is: camelCase on the wire, strict, nothing unknown."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from homing.documents.searching import Offsets
from homing.operations.problems import NO_NUL

Name = Annotated[str, Field(min_length=1, max_length=512, pattern=NO_NUL)]
Query = Annotated[str, Field(max_length=100_000)]
OffsetUnit = Annotated[
    Offsets, Field(description="What offsets count: characters, or UTF-16 units as in a JavaScript string.")
]


class Request(BaseModel):
    """What a client sends. A number is not a text, and a field that is not known is refused rather than ignored."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, alias_generator=to_camel)

    @model_validator(mode="before")
    @classmethod
    def _whole_numbers(cls, payload: Any) -> Any:
        # In JSON 20.0 is a whole number, and some languages write it so.
        if not isinstance(payload, dict):
            return payload
        return {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in payload.items()
        }


class Response(BaseModel):
    """What a client gets."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )


class Fallback(Response):
    """Why an answer is not what was asked for, for a program and for a person."""

    reason: str = Field(description="A stable code, such as `vector:MODEL_NOT_READY`.")
    notice: str = Field(description="What to show, in Chinese.")
    notice_en: str = Field(description="The same in English.")
