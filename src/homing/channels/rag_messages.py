"""Requests and responses of `rag:*`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from homing.channels.message import Fallback, Name, Query, Request, Response

TopK = Annotated[int, Field(ge=0, le=1000, description="How many paragraphs at most.")]
MinScore = Annotated[float, Field(ge=0, le=1, description="Paragraphs that score less are left out.")]
MaxTokens = Annotated[int, Field(ge=0, le=1_000_000, description="What they may cost a language model together.")]


class RagRetrieveRequest(Request):
    """Retrieve what a language model should know. What is not sent is as `rag:config:get` tells it."""

    project_id: Name
    query: Query
    top_k: TopK = 5
    min_score: MinScore = 0.7
    max_tokens: MaxTokens = 1500


class RagChunk(Response):
    """A paragraph for the Retrieved layer."""

    chunk_id: str
    document_id: str
    text: str
    score: float | None = Field(description="How near in meaning, 0 to 1; null where only words found it.")
    token_estimate: int


class RagRetrieveResponse(Response):
    """The paragraphs, nearest first, within the budget. Nothing found is an empty list, never an error."""

    chunks: list[RagChunk]
    used_tokens: int
    truncated: bool = Field(description="Whether the budget left something out.")
    mode: Literal["semantic", "fts-fallback"]
    fallback: Fallback | None = Field(
        description="Why words answered in place of the meaning; null where they did not."
    )


class RagConfig(Response):
    """What holds for `rag:retrieve` where a request does not say otherwise."""

    top_k: TopK = 5
    min_score: MinScore = 0.7
    max_tokens: MaxTokens = 1500


class RagConfigGetRequest(Request):
    """Ask for the configuration."""


class RagConfigGetResponse(RagConfig):
    """The configuration as it is."""


class RagConfigUpdateRequest(Request):
    """Change a part of the configuration; what is null or not sent stays as it is."""

    top_k: TopK | None = None
    min_score: MinScore | None = None
    max_tokens: MaxTokens | None = None


class RagConfigUpdateResponse(RagConfig):
    """The configuration from now on."""
