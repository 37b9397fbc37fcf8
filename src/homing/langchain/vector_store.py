"""Homing as a LangChain vector store, which finds by words as well as by meaning."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from homing.errors import EmbeddingError, InvalidArgument
from homing.frameworks import Filter, OpenCollection, Place, score_of_hit
from homing.langchain.embeddings import HomingEmbeddings, model_of
from homing.langchain.filters import filter_tree
from homing.records import Hit, Match, Mode, VectorRecord
from homing.stores.store import Store


class HomingVectorStore(VectorStore):
    """Texts in a collection of Homing, SQLite in a data folder by default.

    `place` is a data folder, the address of a store, a `Store` or an app; `embedding` is LangChain's, one of Homing's,
    or the bundled model where none is given. Documents are durable and found by words when a call returns, and by
    meaning too unless the model is down; then they follow by themselves when it is back.

    `mode` is how `similarity_search` and its kin look: "hybrid" (by meaning and by words), "semantic" or "keyword";
    each search may say otherwise. Scores are similarities, larger is nearer. `filter` is a dict in LangChain's
    language. Asynchronous methods do the same in a thread.
    """

    def __init__(
        self,
        embedding: Any = None,
        place: Place = None,
        *,
        collection: str = "langchain",
        mode: Mode = "hybrid",
    ) -> None:
        self._given = embedding
        self._mode: Mode = mode
        self._texts = OpenCollection.open(place, collection, None if embedding is None else model_of(embedding))

    def __repr__(self) -> str:
        return f"HomingVectorStore({self.collection!r})"

    @property
    def embeddings(self) -> Embeddings | None:
        """What embeds the texts; None where the folder has no model now."""
        if isinstance(self._given, Embeddings):
            return self._given
        try:
            return HomingEmbeddings(self._texts.embedder)
        except EmbeddingError:
            return None

    @property
    def store(self) -> Store:
        """The store behind it; a view's, where this is one."""
        return self._texts.store

    @property
    def collection(self) -> str:
        """The collection of the store."""
        return self._texts.name

    @property
    def user(self) -> str:
        """Whose view this is; empty where it is nobody's."""
        return self._texts.user

    def for_user(self, user_id: str | int) -> HomingVectorStore:
        """The vector store of one user, through which nothing of others is seen or changed, whatever the ids."""
        view = object.__new__(type(self))
        view._given, view._mode, view._texts = self._given, self._mode, self._texts.for_user(user_id)
        return view

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[Any, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Keep texts, each replacing what has its id; returns the ids. All of one call or none."""
        kept = list(texts)
        for what, given in (("metadatas", metadatas), ("ids", ids)):
            if given is not None and len(given) != len(kept):
                raise InvalidArgument(f"there are {len(kept)} texts and {len(given)} {what}; give one for each")
        names = [one or str(uuid.uuid4()) for one in ids or [None] * len(kept)]
        self._texts.write(zip(names, kept, metadatas or [{} for _ in kept], strict=True))
        return names

    def delete(self, ids: Sequence[str] | None = None, *, filter: Any = None, **kwargs: Any) -> bool:  # noqa: A002
        """Remove documents by id, or those that pass a filter; with neither, all of them."""
        if filter is not None:
            chosen = self._texts.ids(filter_tree(filter))
            ids = chosen if ids is None else [one for one in ids if one in set(chosen)]
        if ids is None:
            self._texts.drop()
        else:
            self._texts.delete(ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents that exist, in the order asked for."""
        return [_document(one) for one in self._texts.get(ids)]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The documents that a query is about, best first."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Any = None,  # noqa: A002
        mode: Mode | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """The same with scores, on the readable scale of the model (0.5 is the border between unrelated and related).

        A model that brings no scale is scored by cosine, lifted by the words found. What waits for its vector is
        scored by how much of the query it covers.
        """
        found = self._texts.search(query, k, where=_where(filter), mode=mode or self._mode)
        return [(_document(hit), score_of_hit(hit)) for hit in found]

    def similarity_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        *,
        filter: Any = None,  # noqa: A002
        **kwargs: Any,
    ) -> list[Document]:
        """The documents nearest to a vector; words have no say here."""
        return [_document(one) for one in self._texts.nearest(embedding, k, _where(filter))]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Any = None,  # noqa: A002
        mode: Mode | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Of the `fetch_k` best documents, `k` that are relevant and differ from each other."""
        found = self._texts.search(query, fetch_k, where=_where(filter), mode=mode or self._mode)
        try:
            vector = self._texts.embedder.embed([query], kind="query")[0].tolist()
        except EmbeddingError:
            # Without the model nobody can say which of them differ.
            return [_document(one) for one in found[:k]]
        return self._diverse(vector, [one.id for one in found], k, lambda_mult)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Any = None,  # noqa: A002
        **kwargs: Any,
    ) -> list[Document]:
        """Of the `fetch_k` documents nearest to a vector, `k` that differ from each other."""
        found = self._texts.nearest(embedding, fetch_k, _where(filter))
        return self._diverse(embedding, [one.id for one in found], k, lambda_mult)

    def _diverse(self, vector: Sequence[float], ids: Sequence[str], k: int, lambda_mult: float) -> list[Document]:
        records = self._texts.get(ids, embeddings=True)
        embedded = [one for one in records if one.embedding is not None]
        rows = [list(map(float, one.embedding)) for one in embedded if one.embedding is not None]
        chosen = [embedded[at] for at in maximal_marginal_relevance(np.asarray(vector), rows, lambda_mult, k)]
        waiting = [one for one in records if one.embedding is None]
        return [_document(one) for one in [*chosen, *waiting][:k]]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return float

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Any = None,
        metadatas: list[dict[Any, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """A vector store with these texts in it; `place`, `collection` and `mode` are as for the constructor."""
        made = cls(embedding, **kwargs)
        made.add_texts(texts, metadatas, ids=ids)
        return made

    def close(self) -> None:
        """Let go of the folder, if it was opened here; what was added is on disk already."""
        self._texts.close()


def _document(found: Hit | Match | VectorRecord) -> Document:
    return Document(id=found.id, page_content=found.text, metadata=dict(found.metadata))


def _where(given: Any) -> Filter:
    return {} if given is None else filter_tree(given)
