"""Hits as LangChain documents: which file each came from, and two lists of them fused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from homing.engine.ranking import DEFAULT_K, Ranking, rrf
from homing.errors import InvalidArgument
from homing.records import Hit, LegShare, Retrieved

FILE_KEYS = ("fileName", "file_name", "filename", "source")
"""Where the name of a file stands in the metadata; the first that is there counts."""


def as_document(hit: Hit, answer: Retrieved, user_id: int | str) -> Document:
    """The text of a hit, with its own metadata and, over it, what the search knows.

    Keys of the search cannot be forged by a document: `id`, `userId`, `fileName`, `similarity` (None where no vector
    was compared), `keywordScore` (how many keywords it contains), `score` (fused), `vectorRank` and `keywordRank` (None
    where that leg did not find it), `matchedKeywords`; and `degraded` with the reason, None for a whole answer.
    """
    legs: dict[str, LegShare] = {share.leg: share for share in hit.legs}
    vector, keyword = legs.get("vector"), legs.get("keyword")
    known: dict[str, Any] = {
        "id": hit.id,
        "userId": user_id,
        "fileName": file_name(hit.metadata),
        "similarity": hit.score,
        "keywordScore": keyword.raw if keyword else 0.0,
        "score": hit.fused,
        "vectorRank": vector.rank if vector else None,
        "keywordRank": keyword.rank if keyword else None,
        "matchedKeywords": list(hit.keywords),
        "degraded": answer.reason,
    }
    return Document(id=hit.id, page_content=hit.text, metadata={**hit.metadata, **known})


def file_name(metadata: Mapping[str, Any]) -> str | None:
    """The file that a document came from; None where its metadata does not tell."""
    return next((str(metadata[key]) for key in FILE_KEYS if metadata.get(key) is not None), None)


def capped(ranked: Iterable[Hit], most: int | None) -> list[Hit]:
    """The same order without what is beyond the first `most` of a file; what has no file always stays."""
    taken: Counter[str] = Counter()
    kept = []
    for hit in ranked:
        name = file_name(hit.metadata)
        if most is not None and name is not None:
            taken[name] += 1
            if taken[name] > most:
                continue
        kept.append(hit)
    return kept


def grouped(ranked: Sequence[Hit]) -> list[Hit]:
    """Files in the order of their best document, the documents of each together, in their own order."""
    groups: dict[object, list[Hit]] = {}
    for place, hit in enumerate(ranked):
        name = file_name(hit.metadata)
        groups.setdefault(name if name is not None else place, []).append(hit)
    return [hit for group in groups.values() for hit in group]


def merge_results_with_rrf(
    vector_results: Sequence[Document],
    keyword_results: Sequence[Document],
    *,
    limit: int | None = None,
    rrf_k: int = DEFAULT_K,
    vector_weight: float = 0.7,
    keyword_weight: float = 0.3,
) -> list[Document]:
    """The documents of both lists, best first, each once: `score = Σ weight / (rrf_k + rank)`, ranks from 1.

    A document is known by its id (`Document.id`, or `metadata["id"]`). It keeps the metadata that both lists give it;
    `score`, `vectorRank` and `keywordRank` are added, the ranks None where a list does not have it. The documents that
    are passed in stay as they are.
    """
    lists = {"vector": vector_results, "keyword": keyword_results}
    by_leg = {leg: {_identity(one): one for one in reversed(found)} for leg, found in lists.items()}
    fused = rrf(
        [
            Ranking("vector", [_identity(one) for one in vector_results], vector_weight),
            Ranking("keyword", [_identity(one) for one in keyword_results], keyword_weight),
        ],
        k=rrf_k,
    )
    merged = []
    for one in fused[:limit]:
        seen = [by_leg[leg][one.id] for leg in ("keyword", "vector") if one.id in by_leg[leg]]
        metadata = {key: value for document in seen for key, value in document.metadata.items()}
        metadata |= {
            "score": one.score,
            "vectorRank": one.ranks.get("vector"),
            "keywordRank": one.ranks.get("keyword"),
        }
        merged.append(Document(id=one.id, page_content=seen[-1].page_content, metadata=metadata))
    return merged


def _identity(document: Document) -> str:
    identity = document.id if document.id is not None else document.metadata.get("id")
    if identity is None:
        raise InvalidArgument("documents are merged by their id; one has neither `id` nor metadata['id']")
    return str(identity)
