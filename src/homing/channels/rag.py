"""Who answers `rag:*`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from homing.app import Homing
from homing.channels.fallback import fallback
from homing.channels.rag_messages import (
    RagChunk,
    RagConfigGetRequest,
    RagConfigGetResponse,
    RagConfigUpdateRequest,
    RagConfigUpdateResponse,
    RagRetrieveRequest,
    RagRetrieveResponse,
)
from homing.channels.work import Work


def retrieve(app: Homing, request: RagRetrieveRequest, work: Work) -> RagRetrieveResponse:
    """Retrieve paragraphs for a prompt."""
    # The defaults of the request are those of a fresh configuration; what was not sent is as configured now.
    sent: dict[str, Any] = request.model_dump(include=request.model_fields_set - {"project_id", "query"})
    packed = app.documents.retrieve(request.project_id, request.query, **sent)
    work.on_search("documents", "keyword" if packed.degraded else "semantic", packed.degraded)
    return RagRetrieveResponse(
        chunks=[RagChunk(**asdict(chunk)) for chunk in packed.chunks],
        used_tokens=packed.used_tokens,
        truncated=packed.truncated,
        mode="fts-fallback" if packed.degraded else "semantic",
        fallback=fallback(packed.reason, packed.notice) if packed.degraded else None,
    )


def get_config(app: Homing, request: RagConfigGetRequest, work: Work) -> RagConfigGetResponse:
    """Tell the configuration."""
    return RagConfigGetResponse(**asdict(app.documents.config()))


def update_config(app: Homing, request: RagConfigUpdateRequest, work: Work) -> RagConfigUpdateResponse:
    """Change what was sent, and keep it."""
    return RagConfigUpdateResponse(**asdict(app.documents.update_config(**request.model_dump(exclude_none=True))))
