"""A document store of Haystack."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from haystack import Document, default_from_dict, default_to_dict
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy

from homing.database import Transaction
from homing.engine.engine import Collection
from homing.errors import InvalidArgument
from homing.frameworks import OpenCollection, Place, score_of_hit
from homing.haystack.filters import Filters, where_of
from homing.haystack.statistics import MetadataStatistics
from homing.records import Mode, VectorRecord


class HomingDocumentStore(MetadataStatistics):
    """Documents in a collection of Homing: SQLite in a data folder, or the store at an address.

    A document is durable, and found by its words, when a call returns; by its meaning as well where it brings an
    embedding. A store that is to `embed` makes the vectors itself, with the model of the folder, whatever documents
    bring. Embeddings of one collection are all of one width. Documents come back by id.
    """

    def __init__(self, place: Place, *, collection: str = "haystack", embed: bool = False) -> None:
        self.place = place
        self.collection = collection
        self.embed = embed

    @cached_property
    def _texts(self) -> OpenCollection:
        return OpenCollection.open(self.place, self.collection, embeds=self.embed)

    def to_dict(self) -> dict[str, Any]:
        """The store for a file of a pipeline, where it is known by a folder or an address."""
        if not isinstance(self.place, str | Path):
            raise InvalidArgument(
                f"a {type(self.place).__name__} cannot be written to a file; give the store a folder or an address"
            )
        return default_to_dict(self, place=str(self.place), collection=self.collection, embed=self.embed)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HomingDocumentStore:
        """The store that `to_dict` described."""
        made: HomingDocumentStore = default_from_dict(cls, data)
        return made

    def count_documents(self) -> int:
        """How many documents there are."""
        return len(self._texts.ids())

    def count_documents_by_filter(self, filters: Filters) -> int:
        """How many documents pass a filter."""
        return len(self._texts.ids(where_of(filters)))

    def filter_documents(self, filters: Filters | None = None) -> list[Document]:
        """The documents that pass a filter, by id."""
        return [_document(one) for one in self._texts.get(self._texts.ids(where_of(filters)), embeddings=True)]

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Keep documents; returns how many were written. Without a policy an id that exists is an error (FAIL)."""
        if not isinstance(documents, list) or not all(isinstance(one, Document) for one in documents):
            raise ValueError("write_documents takes a list of Documents")

        records = {one.id: self._record(one) for one in documents}
        self._texts.check_vectors(list(records.values()))
        written: list[VectorRecord] = []

        def work(transaction: Transaction, collection: Collection) -> int:
            taken = {one.id for one in self._texts.get(list(records))}
            chosen: dict[str, Document] = {}
            for one in documents:
                if policy != DuplicatePolicy.OVERWRITE and (one.id in taken or one.id in chosen):
                    if policy != DuplicatePolicy.SKIP:
                        raise DuplicateDocumentError(f"a document with the id {one.id!r} exists already")
                    continue
                chosen[one.id] = one
            written[:] = [records[one] for one in chosen]
            collection.write([replace(one, embedding=None) for one in written], transaction)
            return len(documents) if policy == DuplicatePolicy.OVERWRITE else len(chosen)

        count = self._texts.change(work)
        # A new kind of vectors may need a table, which not every database makes inside a transaction.
        self._texts.put([one for one in written if one.embedding is not None])
        return count

    def delete_documents(self, document_ids: list[str]) -> None:
        """Remove documents; those that do not exist are no error."""
        self._texts.delete(document_ids)

    def delete_all_documents(self, recreate_index: bool = False) -> None:
        """Remove every document; what is left is as good as new in either case."""
        self._texts.drop()

    def delete_by_filter(self, filters: Filters) -> int:
        """Remove the documents that pass a filter; returns how many."""
        where = where_of(filters)
        return self._texts.change(
            lambda transaction, collection: collection.delete(self._texts.ids(where), transaction)
        )

    def update_by_filter(self, filters: Filters, meta: dict[str, Any]) -> int:
        """Set keys of the meta of the documents that pass a filter; returns how many there were."""
        where = where_of(filters)

        def work(transaction: Transaction, collection: Collection) -> int:
            changed = []
            for one in self._texts.get(self._texts.ids(where)):
                kept = {**one.metadata["document"], "meta": {**one.metadata["document"]["meta"], **meta}}
                # What has the same text keeps its vector.
                changed.append(replace(one, metadata=_metadata(one.id, kept)))
            return collection.write(changed, transaction)

        return self._texts.change(work)

    def retrieve(
        self,
        query: str,
        *,
        query_embedding: Sequence[float] | None = None,
        filters: Filters | None = None,
        top_k: int = 10,
        mode: Mode = "hybrid",
    ) -> list[Document]:
        """The documents that a query is about, best first, with their scores."""
        where = where_of(filters)
        if query_embedding is not None and mode != "keyword" and not query.strip():
            near = self._texts.nearest(query_embedding, top_k, where)
            scores: dict[str, float | None] = {one.id: one.cosine for one in near}
        else:
            found = self._texts.search(query, top_k, where=where, mode=mode, vector=query_embedding)
            scores = {one.id: score_of_hit(one) for one in found}
        return [replace(_document(one), score=scores[one.id]) for one in self._texts.get(list(scores))]

    def close(self) -> None:
        """Let go of the folder, if it was opened here; what was written is on disk already."""
        if "_texts" in self.__dict__:
            self._texts.close()

    def _record(self, document: Document) -> VectorRecord:
        given = document.to_dict(flatten=False)
        kept = {name: given[name] for name in ("meta", "blob", "sparse_embedding") if given[name] is not None}
        if document.content is None:
            kept["empty"] = True
        vector, model = None, ""
        if document.embedding is not None and not self.embed:
            vector = np.asarray(document.embedding, np.float32)
            model = f"haystack/given@{len(vector)}"
            # A store keeps directions; the length is kept beside, so that an embedding comes back as it was.
            kept["length"] = float(np.linalg.norm(vector))
        metadata = _metadata(document.id, kept)
        return VectorRecord(document.id, self.collection, vector, metadata, document.content or "", model)

    # The same in a thread.

    async def count_documents_async(self) -> int:
        return await asyncio.to_thread(self.count_documents)

    async def count_documents_by_filter_async(self, filters: Filters) -> int:
        return await asyncio.to_thread(self.count_documents_by_filter, filters)

    async def filter_documents_async(self, filters: Filters | None = None) -> list[Document]:
        return await asyncio.to_thread(self.filter_documents, filters)

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        return await asyncio.to_thread(self.write_documents, documents, policy)

    async def delete_documents_async(self, document_ids: list[str]) -> None:
        await asyncio.to_thread(self.delete_documents, document_ids)

    async def delete_all_documents_async(self, recreate_index: bool = False) -> None:
        await asyncio.to_thread(self.delete_all_documents, recreate_index)

    async def delete_by_filter_async(self, filters: Filters) -> int:
        return await asyncio.to_thread(self.delete_by_filter, filters)

    async def update_by_filter_async(self, filters: Filters, meta: dict[str, Any]) -> int:
        return await asyncio.to_thread(self.update_by_filter, filters, meta)


def _metadata(name: str, kept: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": name, "document": kept, **dict(_paths("meta", kept["meta"]))}


def _paths(path: str, meta: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What filters ask for: each key of the meta by its path."""
    for key, value in meta.items():
        if isinstance(value, Mapping):
            yield from _paths(f"{path}.{key}", value)
        else:
            yield f"{path}.{key}", value


def _document(record: VectorRecord) -> Document:
    kept = dict(record.metadata["document"])
    length, empty = kept.pop("length", 1.0), kept.pop("empty", False)
    embedding = None if record.embedding is None else (record.embedding * np.float32(length)).tolist()
    content = None if empty else record.text
    return Document.from_dict({**kept, "id": record.id, "content": content, "embedding": embedding})
