"""The seeds' own doors for desktop apps: what they take and give is fixed there, down to defaults and spelling."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from homing.embedders.model_folder import name_in
from homing.embedders.provider import EmbeddingProvider
from homing.engine.search import NOTICES
from homing.errors import DimensionMismatch, EmbeddingError, ModelNotReady, StoreBusy
from homing.operations.documents import OfDocument, OfProject, by_project
from homing.operations.models import Input, Name, Nothing, OffsetUnit, Output, Project
from homing.operations.operation import Call, Channel, operation
from homing.records import Hit, Mode, Notice

TAG = "channels"
DEFAULT = "default"
LOOK_UP = 0.25
"""Seconds between two looks whether the caller still waits."""
NO_MODEL = "vector:MODEL_NOT_READY"

Question = Annotated[str, Field(max_length=100_000, examples=["孤独的感觉"])]
TopK = Annotated[int, Field(ge=0, le=1000, description="How many paragraphs at most.")]
MinScore = Annotated[float, Field(ge=0, le=1, description="Paragraphs that score less are left out.")]
MaxTokens = Annotated[int, Field(ge=0, le=1_000_000, description="What they may cost a language model together.")]


class EmbeddingGenerate(Input):
    """Texts to embed."""

    texts: list[Annotated[str, Field(min_length=1)]] = Field(
        min_length=1, max_length=2048, examples=[["他一个人守着灯塔", "She keeps the silver key."]]
    )
    model: Name = Field(DEFAULT, description="`default`, or the name of a model that is configured.")
    kind: Literal["document", "query"] = Field(
        "document", description="Whether the texts are searched, or are what is asked."
    )
    dimensions: int | None = Field(
        None, ge=1, description="The width that is expected; another one is EMBEDDING_DIMENSION_MISMATCH."
    )


class EmbeddingsGenerated(Output):
    """One vector of length 1 for each text, in order."""

    model: str = Field(description="What made them: provider/model@dimensions.")
    dimensions: int
    embeddings: list[list[float]]


class EmbeddingSearch(OfProject):
    """A text, and how to look for the paragraphs that it is about."""

    query: Question
    mode: Literal["semantic", "hybrid"] = Field(
        "semantic", description="`hybrid`: words have a say beside the meaning."
    )
    top_k: int = Field(20, ge=1, le=1000, description="How many at most.")
    min_score: float = Field(0.55, ge=0, le=1, description="Paragraphs whose meaning scores less are left out.")
    offset_unit: OffsetUnit = "characters"


class Fallback(Output):
    """Why an answer is not what was asked for, for a program and for a person."""

    reason: str = Field(description="A stable code, such as `vector:MODEL_NOT_READY`.")
    notice: str = Field(description="What to show, in Chinese.")
    notice_en: str = Field(description="The same in English.")


class FoundByWords(Output):
    """How an answer says that words gave it in place of the meaning."""

    mode: Literal["semantic", "hybrid", "fts-fallback"]
    fallback: Fallback | None = Field(
        description="Why words answered in place of the meaning; null where they did not."
    )

    def searches(self) -> Iterator[tuple[str, Mode, bool]]:
        """This search of documents."""
        yield "documents", "keyword" if self.mode == "fts-fallback" else self.mode, self.fallback is not None


class Paragraph(Output):
    """A paragraph and its place."""

    chunk_id: str
    document_id: str
    project_id: str
    text: str
    start_offset: int
    end_offset: int
    pending: bool = Field(description="Whether it still waits for its embedding; words find it until then.")


class EmbeddingSearchResult(Paragraph):
    """A paragraph that was found."""

    score: float | None = Field(description="How near in meaning, 0 to 1; null where only words found it.")


class EmbeddingFound(FoundByWords):
    """The paragraphs, best first."""

    results: list[EmbeddingSearchResult]
    took_ms: float


class EmbeddingStatus(Input):
    """What to report on, and for how long to wait until there is nothing more to do."""

    project: Project | None = Field(None, description="null: every project.")
    wait_ms: int = Field(0, ge=0, le=600_000, description="How long to wait for the last paragraph to be embedded.")


class ModelProblem(Output):
    """Why there is no model, and what to do."""

    code: str
    message: str


class EmbeddingProgress(Output):
    """How far the background is."""

    model: str | None = Field(description="provider/model@dimensions of the default; null where there is none.")
    dimensions: int | None
    problem: ModelProblem | None = Field(description="Why there is none; whether it answers is told by what asks it.")
    pending: int = Field(description="How many paragraphs wait for their embedding.")


class WordSearch(OfProject):
    """Words to find; a phrase in quotes is found as it stands."""

    query: Question
    limit: int = Field(20, ge=1, le=1000, description="How many at most.")
    offset: int = Field(0, ge=0, le=8_000, description="How many to pass over: the next page.")
    offset_unit: OffsetUnit = "characters"


class Highlight(Output):
    """A place in a text: `text.slice(start, end)`."""

    start: int
    end: int


class SearchFtsResult(Paragraph):
    """A paragraph with a piece of it to show."""

    snippet: str = Field(description="About 120 characters around the first word that was found, on one line.")
    snippet_highlights: list[Highlight] = Field(description="Where the words stand in the snippet.")
    highlights: list[Highlight] = Field(description="Where the words stand in the document.")


class WordsFound(Output):
    """The paragraphs, best first."""

    results: list[SearchFtsResult]
    mode: Literal["fts"] = "fts"
    has_more: bool = Field(description="Whether a next page has something on it.")
    took_ms: float

    def searches(self) -> Iterator[tuple[str, Mode, bool]]:
        """This search of documents."""
        yield "documents", "keyword", False


class RagConfig(Output):
    """The defaults of `rag:retrieve`."""

    top_k: TopK = 5
    min_score: MinScore = 0.7
    max_tokens: MaxTokens = 1500


class RagConfigChange(Input):
    """What is to change; what is null or not sent stays as it is."""

    top_k: TopK | None = Field(None, examples=[3])
    min_score: MinScore | None = None
    max_tokens: MaxTokens | None = None


class RagRetrieve(OfProject):
    """What is being written. What is not sent is as `rag:config:get` tells it."""

    query: Question
    top_k: TopK = 5
    min_score: MinScore = 0.7
    max_tokens: MaxTokens = 1500


class RagChunk(Output):
    """A paragraph for the Retrieved layer."""

    chunk_id: str
    document_id: str
    text: str
    score: float | None = Field(description="How near in meaning, 0 to 1; null where only words found it.")
    token_estimate: int


class RagRetrieved(FoundByWords):
    """The paragraphs, nearest first, within the budget. Nothing found is an empty list, never an error."""

    mode: Literal["semantic", "fts-fallback"]
    chunks: list[RagChunk]
    used_tokens: int
    truncated: bool = Field(description="Whether the budget left something out.")


class DocumentSource(Output):
    """The text, as it was saved."""

    text: str

    @model_validator(mode="before")
    @classmethod
    def _make_readable(cls, data: Any) -> Any:
        """As it is: an editor gets back the half of a character that it sent."""
        return data


class DocumentDiscarded(Output):
    """What became of it."""

    deleted: bool = Field(description="Whether there was one.")


@operation("read", tag=TAG, channel=Channel("embedding:generate"))
def generate_embeddings(call: Call, asked: EmbeddingGenerate) -> EmbeddingsGenerated:
    """Turn texts into vectors."""
    embedder = _named(call, asked.model)
    if asked.dimensions not in (None, embedder.dimensions):
        raise DimensionMismatch(
            f"{embedder.id} gives {embedder.dimensions} dimensions, not {asked.dimensions}; "
            "leave dimensions out, or name another model",
            details={"expected": asked.dimensions, "actual": embedder.dimensions},
        )
    rows = embedder.embed(asked.texts, kind=asked.kind).tolist()
    # Nothing to check in hundreds of thousands of numbers.
    return EmbeddingsGenerated.model_construct(model=embedder.id, dimensions=embedder.dimensions, embeddings=rows)


@operation("read", tag=TAG, channel=Channel("embedding:search"))
def search_by_meaning(call: Call, asked: EmbeddingSearch) -> EmbeddingFound:
    """Find the paragraphs of a project that a text is about; by words where the model does not answer."""
    found = call.app.documents.search(
        asked.project,
        asked.query,
        mode=asked.mode,
        top_k=asked.top_k,
        min_score=asked.min_score,
        offsets=asked.offset_unit,
    )
    by_words = found.mode == "keyword"
    return EmbeddingFound(
        results=[EmbeddingSearchResult(**_placed(hit), score=hit.score) for hit in found],
        mode="fts-fallback" if found.mode == "keyword" else found.mode,
        fallback=_fallback(found.reason, found.notice) if found.degraded or by_words else None,
        took_ms=found.timings.get("total_ms", 0.0),
    )


@operation("read", tag=TAG, channel=Channel("embedding:status", waits=True))
def get_embedding_status(call: Call, asked: EmbeddingStatus) -> EmbeddingProgress:
    """Tell which model is in use and how many texts are waiting for it, at once or when none is left."""
    deadline = time.monotonic() + asked.wait_ms / 1000
    while (left := deadline - time.monotonic()) > 0 and not _embedded(call, min(left, LOOK_UP)):
        call.go_on()
    pending = call.app.documents.waiting(asked.project)
    try:
        embedder = call.app.models.provider()
        return EmbeddingProgress(model=embedder.id, dimensions=embedder.dimensions, problem=None, pending=pending)
    except EmbeddingError as error:
        return EmbeddingProgress(model=None, dimensions=None, problem=ModelProblem.of(error), pending=pending)


@operation("read", tag=TAG, channel=Channel("search:fts:query"))
def search_by_words(call: Call, asked: WordSearch) -> WordsFound:
    """Find the paragraphs of a project that hold words, a page at a time."""
    # One more than is shown tells whether there is a next page.
    found = call.app.documents.search(
        asked.project,
        asked.query,
        mode="keyword",
        top_k=asked.limit + 1,
        offset=asked.offset,
        offsets=asked.offset_unit,
    )
    results = [
        SearchFtsResult(
            **_placed(hit),
            snippet=hit.metadata["snippet"],
            snippet_highlights=[Highlight(start=a, end=b) for a, b in hit.metadata["snippet_highlights"]],
            highlights=[Highlight(start=a, end=b) for a, b in hit.metadata["highlights"]],
        )
        for hit in found.hits[: asked.limit]
    ]
    return WordsFound(results=results, has_more=len(found) > asked.limit, took_ms=found.timings.get("total_ms", 0.0))


@operation("read", tag=TAG, channel=Channel("rag:retrieve"))
def retrieve_for_prompt(call: Call, asked: RagRetrieve) -> RagRetrieved:
    """Retrieve what a language model should know. What is not sent is as `rag:config:get` tells it."""
    # The defaults of the request are those of a fresh configuration; what was not sent is as configured now.
    sent: dict[str, Any] = asked.model_dump(include=asked.model_fields_set - {"project", "query"})
    packed = call.app.documents.retrieve(asked.project, asked.query, **sent)
    return RagRetrieved(
        chunks=[RagChunk(**asdict(chunk)) for chunk in packed.chunks],
        used_tokens=packed.used_tokens,
        truncated=packed.truncated,
        mode="fts-fallback" if packed.degraded else "semantic",
        fallback=_fallback(packed.reason, packed.notice) if packed.degraded else None,
    )


def _of_config(asked: Any) -> str:
    return "rag:config"


@operation("read", tag=TAG, channel=Channel("rag:config:get", _of_config))
def get_rag_config(call: Call, asked: Nothing) -> RagConfig:
    """Show the defaults of `rag:retrieve`."""
    return RagConfig.of(call.app.documents.config())


@operation("write", tag=TAG, channel=Channel("rag:config:update", _of_config))
def update_rag_config(call: Call, asked: RagConfigChange) -> RagConfig:
    """Change a part of the configuration, and keep it; what is null or not sent stays as it is."""
    return RagConfig.of(call.app.documents.update_config(**asked.model_dump(exclude_none=True)))


@operation("read", tag=TAG, channel=Channel("document:text", by_project))
def get_document_source(call: Call, asked: OfDocument) -> DocumentSource:
    """Get the text of a document, exactly as it was saved."""
    return DocumentSource(text=call.app.documents.text(asked.project, asked.document))


@operation("write", tag=TAG, channel=Channel("document:delete", by_project))
def discard_document(call: Call, asked: OfDocument) -> DocumentDiscarded:
    """Delete a document with its paragraphs and vectors. Deleting what is not there is fine."""
    return DocumentDiscarded(deleted=call.app.documents.delete(asked.project, asked.document))


def _named(call: Call, name: str) -> EmbeddingProvider:
    default = call.app.embedder
    if default is not None and name in (DEFAULT, default.id, name_in(default.id)):
        return default
    if name == DEFAULT:
        raise ModelNotReady("no embedding model is configured; set embedding.provider, or name a model")
    manager = call.app.models.manager
    return manager.get_or_create_adapter(manager.model_registry.find_model(None, name))


def _embedded(call: Call, seconds: float) -> bool:
    """Whether nothing waits any more; where something does, this takes so many seconds."""
    started = time.monotonic()
    with suppress(StoreBusy):
        if call.app.documents.flush(seconds):
            return True
    time.sleep(max(0.0, started + seconds - time.monotonic()))
    return False


def _placed(hit: Hit) -> dict[str, Any]:
    place = ("document_id", "project_id", "start_offset", "end_offset", "pending")
    return {"chunk_id": hit.id, "text": hit.text} | {name: hit.metadata[name] for name in place}


def _fallback(reason: str | None, notice: Notice | None) -> Fallback:
    """What to show; without a reason there is simply no model."""
    said = notice or NOTICES["vector"]
    return Fallback(reason=reason or NO_MODEL, notice=said.zh, notice_en=said.en)
