"""Homing as parts of LlamaIndex: a vector store that finds by words as well, an embedding, and a hybrid retriever.

    store = HomingVectorStore("library")
    index = VectorStoreIndex.from_vector_store(store, embed_model=HomingEmbedding())

Needs the extra `llamaindex`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from homing.embedders.provider import EmbeddingProvider
from homing.errors import InvalidArgument
from homing.frameworks import OpenCollection, Place, in_thread, missing, score_of_hit
from homing.records import Mode, VectorRecord
from homing.vectors import as_vector

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
    from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
    from llama_index.core.vector_stores.types import (
        BasePydanticVectorStore,
        FilterCondition,
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
        VectorStoreQuery,
        VectorStoreQueryMode,
        VectorStoreQueryResult,
    )
    from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
except ModuleNotFoundError as error:
    raise missing("llama-index-core", "llamaindex") from error

log = logging.getLogger(__name__)

__all__ = ["HomingEmbedding", "HomingRetriever", "HomingVectorStore"]

Where = Mapping[str, Any]
MMR_DEPTH = 4
"""How many times as many nodes are looked at as are chosen, where they are to differ from each other."""
_MODES: Mapping[VectorStoreQueryMode, Mode] = {
    VectorStoreQueryMode.DEFAULT: "semantic",
    VectorStoreQueryMode.HYBRID: "hybrid",
    VectorStoreQueryMode.SEMANTIC_HYBRID: "hybrid",
    VectorStoreQueryMode.SPARSE: "keyword",
    VectorStoreQueryMode.TEXT_SEARCH: "keyword",
}
_COMPARISONS = {
    FilterOperator.NE: "$ne",
    FilterOperator.GT: "$gt",
    FilterOperator.GTE: "$gte",
    FilterOperator.LT: "$lt",
    FilterOperator.LTE: "$lte",
    FilterOperator.IN: "$in",
    FilterOperator.NIN: "$nin",
    FilterOperator.ANY: "$in",
}


class HomingVectorStore(BasePydanticVectorStore):
    """Nodes in a collection of Homing, with their texts: SQLite in a data folder, or the store at an address.

    A node is durable, and found by its words, when a call returns; by its meaning as well where it brings an embedding,
    as an index and an ingestion pipeline give it. Embeddings of one collection are all of one model.
    """

    collection: str = "llamaindex"
    _texts: OpenCollection = PrivateAttr()

    def __init__(self, place: Place, *, collection: str = "llamaindex") -> None:
        super().__init__(stores_text=True, collection=collection)
        self._texts = OpenCollection.open(place, collection, embeds=False)

    @classmethod
    def class_name(cls) -> str:
        """What LlamaIndex calls it."""
        return "HomingVectorStore"

    @property
    def client(self) -> Any:
        """The store behind it."""
        return self._texts.store

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Keep nodes, each replacing the one with its id; returns the ids."""
        self._texts.put([_record(one, self.collection) for one in nodes])
        return [one.node_id for one in nodes]

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """The nodes with these ids, or that pass a filter, or both."""
        return [_node(one) for one in self._texts.get(self._chosen(node_ids, filters), embeddings=True)]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Remove the nodes of a document."""
        where = {"ref_doc_id": {"$eq": ref_doc_id}}
        self._texts.change(lambda transaction, nodes: nodes.delete(self._texts.ids(where), transaction))

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Remove the nodes with these ids, or that pass a filter, or both; with neither, none."""
        if node_ids is not None or filters is not None:
            self._texts.change(lambda change, nodes: nodes.delete(self._chosen(node_ids, filters), change))

    def clear(self) -> None:
        """Remove every node."""
        self._texts.drop()

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The nodes that a query is about, best first, with scores from 0 to 1."""
        scores = self._scores(query)
        nodes = {one.id: _node(one) for one in self._texts.get(list(scores))}
        shown = [one for one in scores if one in nodes]
        return VectorStoreQueryResult([nodes[one] for one in shown], [scores[one] for one in shown], shown)

    def close(self) -> None:
        """Let go of the folder, if it was opened here; what was added is on disk already."""
        self._texts.close()

    # The same in a thread.

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        return await asyncio.to_thread(self.add, nodes)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        await asyncio.to_thread(self.delete, ref_doc_id)

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        await asyncio.to_thread(self.delete_nodes, node_ids, filters)

    async def aclear(self) -> None:
        await asyncio.to_thread(self.clear)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        return await asyncio.to_thread(self.query, query)

    def _chosen(self, node_ids: Sequence[str] | None, filters: MetadataFilters | None) -> list[str]:
        if node_ids is None:
            return self._texts.ids(where_of(filters))
        passing = None if filters is None else set(self._texts.ids(where_of(filters)))
        return [one for one in node_ids if passing is None or one in passing]

    def _scores(self, query: VectorStoreQuery) -> dict[str, float]:
        where = _where(query)
        text, vector, limit = query.query_str or "", query.query_embedding, query.similarity_top_k
        if query.mode == VectorStoreQueryMode.MMR:
            return self._varied(query, where)
        if query.mode not in _MODES:
            known = ", ".join(sorted(one.value for one in (*_MODES, VectorStoreQueryMode.MMR)))
            raise InvalidArgument(f"nodes cannot be queried in the mode {query.mode.value!r}; known: {known}")
        mode = _MODES[query.mode]
        if mode == "hybrid":
            limit = query.hybrid_top_k or limit
            # What lies between has no say: evidence of words and meaning is weighed by what it is worth.
            mode = "keyword" if query.alpha == 0 else "semantic" if query.alpha == 1 else mode
        if mode == "semantic" and not text.strip():
            near = self._texts.nearest(_vector(query), limit, where)
            return {one.id: max(0.0, one.cosine or 0.0) for one in near}
        if mode == "semantic":
            vector = _vector(query)
        found = self._texts.search(text, limit, where=where, mode=mode, vector=vector)
        return {one.id: score_of_hit(one) for one in found}

    def _varied(self, query: VectorStoreQuery, where: Where) -> dict[str, float]:
        limit = query.similarity_top_k
        near = self._texts.nearest(_vector(query), MMR_DEPTH * limit, where)
        records = self._texts.get([one.id for one in near], embeddings=True)
        scores, ids = get_top_k_mmr_embeddings(
            _vector(query),
            [one.embedding.tolist() for one in records if one.embedding is not None],
            similarity_top_k=limit,
            embedding_ids=[one.id for one in records if one.embedding is not None],
            mmr_threshold=query.mmr_threshold,
        )
        return dict(zip(ids, scores, strict=True))


class HomingEmbedding(BaseEmbedding):
    """One of Homing's models as LlamaIndex embeds with it; without a provider, the bundled one, offline."""

    _provider: EmbeddingProvider = PrivateAttr()

    def __init__(self, provider: EmbeddingProvider | None = None, **kwargs: Any) -> None:
        if provider is None:
            from homing.embedders.local import LocalProvider

            provider = LocalProvider()
        super().__init__(**{"model_name": provider.id, **kwargs})
        self._provider = provider

    @classmethod
    def class_name(cls) -> str:
        """What LlamaIndex calls it."""
        return "HomingEmbedding"

    def _embed(self, texts: list[str], kind: Literal["query", "document"]) -> list[list[float]]:
        rows: list[list[float]] = self._provider.embed(texts, kind=kind).tolist()
        return rows

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embed([query], "query")[0]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._embed([text], "document")[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._embed(texts, "document")

    _aget_query_embedding: ClassVar[Any] = in_thread(_get_query_embedding)
    _aget_text_embedding: ClassVar[Any] = in_thread(_get_text_embedding)
    _aget_text_embeddings: ClassVar[Any] = in_thread(_get_text_embeddings)


class HomingRetriever(BaseRetriever):
    """The nodes of a `HomingVectorStore` that a query is about: by meaning and by words, best first.

    `embed_model` is the one that embedded the nodes. Without it, or while it fails, words answer alone.
    """

    def __init__(
        self,
        vector_store: HomingVectorStore,
        embed_model: BaseEmbedding | None = None,
        *,
        similarity_top_k: int = 5,
        filters: MetadataFilters | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._vector_store = vector_store
        self._embed_model = embed_model
        self._limit = similarity_top_k
        self._filters = filters

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        vector = query_bundle.embedding
        if vector is None and self._embed_model is not None:
            try:
                vector = self._embed_model.get_agg_embedding_from_queries(query_bundle.embedding_strs)
            except Exception as error:
                log.warning("the query cannot be embedded, words answer alone: %s", error)
        mode = VectorStoreQueryMode.TEXT_SEARCH if vector is None else VectorStoreQueryMode.HYBRID
        found = self._vector_store.query(
            VectorStoreQuery(vector, self._limit, query_str=query_bundle.query_str, mode=mode, filters=self._filters)
        )
        return [
            NodeWithScore(node=node, score=score)
            for node, score in zip(found.nodes or [], found.similarities or [], strict=True)
        ]

    _aretrieve: ClassVar[Any] = in_thread(_retrieve)


def _record(node: BaseNode, collection: str) -> VectorRecord:
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    metadata = node_to_metadata_dict(node, remove_text=True)
    # An empty list is met by no value; without it the key is empty to a filter, as it is to LlamaIndex.
    metadata = {key: value for key, value in metadata.items() if value != []} | {"_node_id": node.node_id}
    if node.embedding is None:
        return VectorRecord(node.node_id, collection, None, metadata, text)
    model = f"llamaindex/given@{len(node.embedding)}"
    return VectorRecord(node.node_id, collection, as_vector(node.embedding), metadata, text, model)


def _node(record: VectorRecord) -> BaseNode:
    node = metadata_dict_to_node(dict(record.metadata), text=record.text)
    if record.embedding is not None:
        node.embedding = record.embedding.tolist()
    return node


def _vector(query: VectorStoreQuery) -> list[float]:
    if query.query_embedding is None:
        raise InvalidArgument(f"a query in the mode {query.mode.value!r} needs its embedding; give it query_embedding")
    return query.query_embedding


def _where(query: VectorStoreQuery) -> Where:
    parts = [where_of(query.filters)] if query.filters else []
    # An index that keeps no nodes itself asks with an empty list, and means all of them.
    if query.doc_ids:
        parts.append({"ref_doc_id": {"$in": query.doc_ids}})
    if query.node_ids:
        parts.append({"_node_id": {"$in": query.node_ids}})
    return {"$and": parts} if parts else {}


def where_of(filters: MetadataFilters | None) -> Where:
    """A filter of LlamaIndex as the stores read it. Raises InvalidArgument for what they cannot answer."""
    if filters is None or not filters.filters:
        return {}
    parts = [where_of(one) if isinstance(one, MetadataFilters) else _condition(one) for one in filters.filters]
    match filters.condition:
        case FilterCondition.OR:
            return {"$or": parts}
        case FilterCondition.NOT:
            return {"$not": {"$or": parts}}
    return {"$and": parts}


def _condition(asked: MetadataFilter) -> Where:
    key, value = asked.key, asked.value
    match asked.operator:
        case FilterOperator.EQ | FilterOperator.CONTAINS:
            return {key: {"$eq": value}}
        case FilterOperator.ALL if isinstance(value, list):
            return {"$and": [{key: {"$eq": one}} for one in value]}
        case FilterOperator.IS_EMPTY:
            return {"$or": [{key: {"$exists": False}}, {key: {"$in": [None, ""]}}]}
        case operator if operator in _COMPARISONS:
            return {key: {_COMPARISONS[operator]: value}}
    known = ", ".join(sorted(one.value for one in (*_COMPARISONS, FilterOperator.EQ, FilterOperator.CONTAINS)))
    raise InvalidArgument(
        f"nodes cannot be filtered by {asked.operator.value!r} of {key!r}; known: {known}, all, is_empty"
    )
