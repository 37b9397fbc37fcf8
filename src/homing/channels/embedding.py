"""Who answers `embedding:*`."""

from __future__ import annotations

import time
from contextlib import suppress

from homing.app import Homing
from homing.channels.embedding_messages import (
    EmbeddingGenerateRequest,
    EmbeddingGenerateResponse,
    EmbeddingReindexRequest,
    EmbeddingReindexResponse,
    EmbeddingSearchRequest,
    EmbeddingSearchResponse,
    EmbeddingSearchResult,
    EmbeddingStatusRequest,
    EmbeddingStatusResponse,
    ModelProblem,
)
from homing.channels.fallback import fallback
from homing.channels.work import Work
from homing.embedders.provider import EmbeddingProvider
from homing.errors import DimensionMismatch, EmbeddingError, InvalidArgument, ModelNotReady, StoreBusy
from homing.records import Hit

DEFAULT = "default"
LOOK_UP = 0.25
"""Seconds between two looks whether the caller still waits."""


def generate(app: Homing, request: EmbeddingGenerateRequest, work: Work) -> EmbeddingGenerateResponse:
    """Embed texts with the model that is named."""
    embedder = _named(app, request.model)
    if request.dimensions not in (None, embedder.dimensions):
        raise DimensionMismatch(
            f"{embedder.id} gives {embedder.dimensions} dimensions, not {request.dimensions}; "
            "leave dimensions out, or name another model",
            details={"expected": request.dimensions, "actual": embedder.dimensions},
        )
    rows = embedder.embed(request.texts, kind=request.kind)
    return EmbeddingGenerateResponse(model=embedder.id, dimensions=embedder.dimensions, embeddings=rows.tolist())


def search(app: Homing, request: EmbeddingSearchRequest, work: Work) -> EmbeddingSearchResponse:
    """Search by meaning; by words where the model does not answer, and say so."""
    found = app.documents.search(
        request.project_id,
        request.query,
        mode=request.mode,
        top_k=request.top_k,
        min_score=request.min_score,
        offsets=request.offset_unit,
    )
    work.on_search("documents", found.mode, found.degraded)
    by_words = found.mode == "keyword"
    return EmbeddingSearchResponse(
        results=[_result(hit) for hit in found],
        mode="fts-fallback" if found.mode == "keyword" else found.mode,
        fallback=fallback(found.reason, found.notice) if found.degraded or by_words else None,
        took_ms=found.timings.get("total_ms", 0.0),
    )


def reindex(app: Homing, request: EmbeddingReindexRequest, work: Work) -> EmbeddingReindexResponse:
    """Bring the index in order with the documents."""
    if request.document_id is not None and request.project_id is None:
        raise InvalidArgument("embedding:reindex: a document belongs to a project; send projectId too")
    done = app.documents.reindex(
        request.project_id,
        document=request.document_id,
        batch_size=request.batch_size,
        progress=work.progress,
        cancelled=work.cancelled,
    )
    work.go_on()
    return EmbeddingReindexResponse(
        documents=done.documents,
        chunks=done.chunks,
        embedded=done.embedded,
        repaired=done.repaired,
        removed=done.removed,
        pending=done.waiting,
    )


def status(app: Homing, request: EmbeddingStatusRequest, work: Work) -> EmbeddingStatusResponse:
    """Tell how much waits, at once or when nothing waits any more."""
    deadline = time.monotonic() + request.wait_ms / 1000
    while (left := deadline - time.monotonic()) > 0 and not _embedded(app, min(left, LOOK_UP)):
        work.go_on()
    pending = app.documents.waiting(request.project_id)
    try:
        embedder = app.models.provider()
        return EmbeddingStatusResponse(model=embedder.id, dimensions=embedder.dimensions, problem=None, pending=pending)
    except EmbeddingError as error:
        problem = ModelProblem(code=error.code, message=error.message)
        return EmbeddingStatusResponse(model=None, dimensions=None, problem=problem, pending=pending)


def _embedded(app: Homing, seconds: float) -> bool:
    """Whether nothing waits any more; where something does, this takes so many seconds."""
    started = time.monotonic()
    with suppress(StoreBusy):
        if app.documents.flush(seconds):
            return True
    time.sleep(max(0.0, started + seconds - time.monotonic()))
    return False


def _result(hit: Hit) -> EmbeddingSearchResult:
    place = hit.metadata
    return EmbeddingSearchResult(
        chunk_id=hit.id,
        document_id=place["document_id"],
        project_id=place["project_id"],
        text=hit.text,
        score=hit.score,
        start_offset=place["start_offset"],
        end_offset=place["end_offset"],
        pending=place["pending"],
    )


def _named(app: Homing, name: str) -> EmbeddingProvider:
    default = app.embedder
    if default is not None and name in (DEFAULT, default.id, default.id.partition("/")[2].rpartition("@")[0]):
        return default
    if name == DEFAULT:
        raise ModelNotReady("no embedding model is configured; set embedding.provider, or name a model")
    manager = app.models.manager
    return manager.get_or_create_adapter(manager.model_registry.find_model(None, name))
