"""What requests and answers are made of: strict on the way in, complete on the way out."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Query = Annotated[
    str, Field(min_length=1, max_length=10_000, pattern=r"\S", description="A question, in Chinese or English.")
]
Limit = Annotated[int, Field(ge=1, le=100, description="How many hits at most.")]
Name = Annotated[str, Field(min_length=1, max_length=1_000, pattern=r"^[^\x00]+$")]


class Body(BaseModel):
    """A request: unknown fields are refused, and a number is a number, not a text that looks like one."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Answer(BaseModel):
    """An answer: every field is always there."""

    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True)
