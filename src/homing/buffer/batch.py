"""What a batch of requests becomes in the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from homing.buffer.outbox import Claimed, EmbedRequest
from homing.embedders.provider import EmbeddingProvider
from homing.records import VectorRecord


def by_collection(claimed: Sequence[Claimed]) -> Iterable[tuple[str, list[EmbedRequest]]]:
    """The requests of each collection, in order."""
    grouped: dict[str, list[EmbedRequest]] = {}
    for one in claimed:
        grouped.setdefault(one.request.collection, []).append(one.request)
    return grouped.items()


def records_of(requests: Sequence[EmbedRequest], provider: EmbeddingProvider | None) -> list[VectorRecord]:
    """The texts with their vectors; without a provider for keywords only. Raises EmbeddingError."""
    texts = [one.text or "" for one in requests]
    if provider is None or not requests:
        return [
            VectorRecord(one.id, one.collection, None, one.metadata, text)
            for one, text in zip(requests, texts, strict=True)
        ]
    return [
        VectorRecord(one.id, one.collection, row, one.metadata, text, provider.id)
        for one, text, row in zip(requests, texts, provider.embed(texts), strict=True)
    ]


def is_kept(request: EmbedRequest, record: VectorRecord | None, provider: EmbeddingProvider | None) -> bool:
    """Whether a record is what a request asks for already."""
    if record is None or record.text != request.text or dict(record.metadata) != dict(request.metadata):
        return False
    return provider is None or (record.embedding is not None and record.model == provider.id)
