"""Requests and responses of `embedding:*`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from homing.channels.message import Fallback, Name, OffsetUnit, Query, Request, Response

MAX_TEXTS = 2048


class EmbeddingGenerateRequest(Request):
    """Turn texts into vectors."""

    texts: list[Annotated[str, Field(min_length=1)]] = Field(min_length=1, max_length=MAX_TEXTS)
    model: Name = Field("default", description="`default`, or the name of a model that is configured.")
    kind: Literal["document", "query"] = Field(
        "document", description="Whether the texts are searched, or are what is asked."
    )
    dimensions: int | None = Field(
        None, ge=1, description="The width that is expected; another one is EMBEDDING_DIMENSION_MISMATCH."
    )


class EmbeddingGenerateResponse(Response):
    """One vector of length 1 for each text, in order."""

    model: str = Field(description="What made them: provider/model@dimensions.")
    dimensions: int
    embeddings: list[list[float]]


class EmbeddingSearchRequest(Request):
    """Find the paragraphs of a project that a text is about."""

    project_id: Name
    query: Query
    mode: Literal["semantic", "hybrid"] = Field(
        "semantic", description="`hybrid`: words have a say beside the meaning."
    )
    top_k: int = Field(20, ge=1, le=1000, description="How many at most.")
    min_score: float = Field(0.55, ge=0, le=1, description="Paragraphs whose meaning scores less are left out.")
    offset_unit: OffsetUnit = "characters"


class EmbeddingSearchResult(Response):
    """A paragraph."""

    chunk_id: str
    document_id: str
    project_id: str
    text: str
    score: float | None = Field(description="How near in meaning, 0 to 1; null where only words found it.")
    start_offset: int
    end_offset: int
    pending: bool = Field(description="Whether it still waits for its embedding; words find it until then.")


class EmbeddingSearchResponse(Response):
    """The paragraphs, best first."""

    results: list[EmbeddingSearchResult]
    mode: Literal["semantic", "hybrid", "fts-fallback"]
    fallback: Fallback | None = Field(
        description="Why words answered in place of the meaning; null where they did not."
    )
    took_ms: float


class EmbeddingReindexRequest(Request):
    """Bring the index in order: embed what has no vector, one of another model, or a damaged one."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"documentId": {"type": "string"}}, "required": ["documentId"]},
            "then": {"properties": {"projectId": {"type": "string"}}, "required": ["projectId"]},
        }
    )

    project_id: Name | None = Field(None, description="null: every project.")
    document_id: Name | None = Field(None, description="null: every document of the project.")
    batch_size: int = Field(128, ge=1, le=4096, description="How many paragraphs are embedded at once.")


class EmbeddingReindexResponse(Response):
    """What was done."""

    documents: int
    chunks: int = Field(description="How many paragraphs were looked at.")
    embedded: int = Field(description="How many of them had to be embedded.")
    repaired: int = Field(description="How many of those because their vector was damaged.")
    removed: int = Field(description="How many entries of the index belonged to no paragraph.")
    pending: int = Field(description="How many still have no vector, because the model did not answer.")


class EmbeddingStatusRequest(Request):
    """Ask which model there is and how much waits for it."""

    project_id: Name | None = Field(None, description="null: every project.")
    wait_ms: int = Field(0, ge=0, le=600_000, description="How long to wait for the last paragraph to be embedded.")


class ModelProblem(Response):
    """Why there is no model, and what to do."""

    code: str
    message: str


class EmbeddingStatusResponse(Response):
    """How far the background is."""

    model: str | None = Field(description="provider/model@dimensions of the default; null where there is none.")
    dimensions: int | None
    problem: ModelProblem | None = Field(description="Why there is none; whether it answers is told by what asks it.")
    pending: int = Field(description="How many paragraphs wait for their embedding.")
