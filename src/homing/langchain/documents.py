"""Hits as LangChain documents."""

from __future__ import annotations

from typing import Any

from homing.langchain.files import file_name
from homing.langchain.library import Document
from homing.records import Hit, LegShare, Retrieved


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
