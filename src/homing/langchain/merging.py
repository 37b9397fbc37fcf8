"""Two lists of documents become one, by weighted reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Sequence

from homing.engine.ranking import DEFAULT_K, Ranking, rrf
from homing.errors import InvalidArgument
from homing.langchain.library import Document


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
