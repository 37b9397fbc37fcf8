"""Every channel that there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homing.channels import document_messages as d
from homing.channels import documents, embedding, keywords, rag
from homing.channels import embedding_messages as e
from homing.channels import rag_messages as r
from homing.channels import search_messages as s
from homing.channels.channel import Channel, after_its_turn


def _of_project(request: Any) -> str:
    return f"project {request.project_id}"


def _of_config(request: Any) -> str:
    return "rag:config"


_ALL = (
    Channel("embedding:generate", e.EmbeddingGenerateRequest, e.EmbeddingGenerateResponse, embedding.generate),
    Channel("embedding:search", e.EmbeddingSearchRequest, e.EmbeddingSearchResponse, embedding.search),
    Channel(
        "embedding:reindex",
        e.EmbeddingReindexRequest,
        e.EmbeddingReindexResponse,
        embedding.reindex,
        writes=True,
        pace="long",
    ),
    Channel("embedding:status", e.EmbeddingStatusRequest, e.EmbeddingStatusResponse, embedding.status, pace="waiting"),
    Channel("search:fts:query", s.SearchFtsQueryRequest, s.SearchFtsQueryResponse, keywords.query),
    Channel("rag:retrieve", r.RagRetrieveRequest, r.RagRetrieveResponse, rag.retrieve),
    Channel("rag:config:get", r.RagConfigGetRequest, r.RagConfigGetResponse, rag.get_config, lane=_of_config),
    Channel(
        "rag:config:update",
        r.RagConfigUpdateRequest,
        r.RagConfigUpdateResponse,
        rag.update_config,
        writes=True,
        lane=_of_config,
    ),
    Channel(
        "document:save",
        d.DocumentSaveRequest,
        d.DocumentSaveResponse,
        documents.save,
        writes=True,
        lane=_of_project,
    ),
    Channel(
        "document:delete",
        d.DocumentDeleteRequest,
        d.DocumentDeleteResponse,
        documents.delete,
        writes=True,
        lane=_of_project,
    ),
    Channel(
        "document:rename",
        d.DocumentRenameRequest,
        d.DocumentRenameResponse,
        documents.rename,
        writes=True,
        lane=_of_project,
    ),
    Channel(
        "document:move", d.DocumentMoveRequest, d.DocumentMoveResponse, documents.move, writes=True, lane=_of_project
    ),
    Channel(
        "document:list",
        d.DocumentListRequest,
        d.DocumentListResponse,
        after_its_turn(documents.listed),
        lane=_of_project,
    ),
    Channel(
        "document:text", d.DocumentTextRequest, d.DocumentTextResponse, after_its_turn(documents.text), lane=_of_project
    ),
    Channel(
        "document:chunks",
        d.DocumentChunksRequest,
        d.DocumentChunksResponse,
        after_its_turn(documents.chunks),
        lane=_of_project,
    ),
    Channel("project:list", d.ProjectListRequest, d.ProjectListResponse, documents.projects),
    Channel(
        "project:delete",
        d.ProjectDeleteRequest,
        d.ProjectDeleteResponse,
        documents.delete_project,
        writes=True,
        lane=_of_project,
    ),
)
CHANNELS: Mapping[str, Channel] = {channel.name: channel for channel in _ALL}
"""The channels by name."""
