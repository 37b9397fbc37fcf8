"""A document store of Haystack, with its filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from haystack import Document, default_from_dict, default_to_dict
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError

from homing.database import Transaction
from homing.engine.engine import Collection
from homing.errors import InvalidArgument
from homing.frameworks import OpenCollection, Place, in_thread, score_of_hit
from homing.records import Mode, VectorRecord

Filters = Mapping[str, Any]
NOTHING: Filters = {"id": {"$in": []}}
_SIGNS = {">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte"}
_TYPES = {"bool": "boolean", "int": "long", "float": "float", "str": "keyword"}


class HomingDocumentStore:
    """Documents in a collection of Homing: SQLite in a data folder, or the store at an address.

    A document is durable, and found by its words, when a call returns; by its meaning as well where it brings an
    embedding. A store that is to `embed` makes the vectors itself, with the model of the folder, whatever documents
    bring. Embeddings of one collection are all of one width. Documents come back by id.

    A field of the meta may be named with or without `meta.`; each value of a list counts by itself.
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

    def count_unique_metadata_by_filter(self, filters: Filters, metadata_fields: Sequence[str]) -> dict[str, int]:
        """How many different values each field has among the documents that pass a filter."""
        return {field: len(self._different(field, filters)) for field in metadata_fields}

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """The fields that documents have, each with the type of its values."""
        found: dict[str, dict[str, str]] = {}
        for field, value in self._values(None):
            kind = _TYPES.get(type(value).__name__, "object")
            known = found.setdefault(field, {"type": kind})
            if known["type"] != kind:
                known["type"] = "float" if {known["type"], kind} == {"long", "float"} else "keyword"
        return found

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """The smallest and the largest number of a field; of texts (dates) where it has no number, else None."""
        values = self._different(metadata_field, None)
        numbers = [one for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
        ordered: Sequence[Any] = numbers or [one for one in values if isinstance(one, str)]
        return {"min": min(ordered, default=None), "max": max(ordered, default=None)}

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[Any], int]:
        """A page of the different values of a field that contain `search_term`, in order, and how many there are."""
        term = (search_term or "").casefold()
        found = [one for one in self._different(metadata_field, filters) if term in str(one).casefold()]
        return found[from_ : from_ + size], len(found)

    def _different(self, field: str, filters: Filters | None) -> list[Any]:
        name = field.removeprefix("meta.")
        # 1, 1.0 and True are equal in Python.
        different = {(str(one), type(one).__name__): one for of, one in self._values(filters) if of == name}
        return [different[key] for key in sorted(different)]

    def _values(self, filters: Filters | None) -> Iterator[tuple[str, Any]]:
        for record in self._texts.get(self._texts.ids(where_of(filters))):
            for path, value in record.metadata.items():
                if path.startswith("meta."):
                    for one in value if isinstance(value, list) else [value]:
                        if one is not None:
                            yield path.removeprefix("meta."), one

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

    count_documents_async = in_thread(count_documents)
    count_documents_by_filter_async = in_thread(count_documents_by_filter)
    filter_documents_async = in_thread(filter_documents)
    write_documents_async = in_thread(write_documents)
    delete_documents_async = in_thread(delete_documents)
    delete_all_documents_async = in_thread(delete_all_documents)
    delete_by_filter_async = in_thread(delete_by_filter)
    update_by_filter_async = in_thread(update_by_filter)
    count_unique_metadata_by_filter_async = in_thread(count_unique_metadata_by_filter)
    get_metadata_fields_info_async = in_thread(get_metadata_fields_info)
    get_metadata_field_min_max_async = in_thread(get_metadata_field_min_max)
    get_metadata_field_unique_values_async = in_thread(get_metadata_field_unique_values)


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


def where_of(filters: Filters | None) -> Filters:
    """A filter of Haystack as the stores read it. Raises FilterError for what is none."""
    if not filters:
        return {}
    if "field" in filters:
        return _comparison(filters)
    if "operator" not in filters or "conditions" not in filters:
        raise FilterError(f"a filter has an operator, and a field or conditions; got {sorted(filters)}")
    parts = [where_of(one) for one in filters["conditions"]]
    if not parts:
        raise FilterError("the conditions of a filter are empty")
    match str(filters["operator"]).upper():
        case "AND":
            return {"$and": parts}
        case "OR":
            return {"$or": parts}
        case "NOT":
            return {"$not": {"$and": parts}}
    raise FilterError(f"there is no operator {filters['operator']!r}; known: AND, OR, NOT")


def _comparison(condition: Filters) -> Filters:
    if "operator" not in condition or "value" not in condition:
        raise FilterError(f"a condition has field, operator and value; got {sorted(condition)}")
    field, operator, value = condition["field"], condition["operator"], condition["value"]
    if field in ("content", "embedding", "score", "blob"):
        raise FilterError(f"a filter asks about id and meta; {field!r} is neither")
    key = field if field == "id" or str(field).startswith("meta.") else f"meta.{field}"
    match operator:
        case "==" | "!=":
            if isinstance(value, list):
                raise FilterError(f"{operator} compares with one value; use in and not in for {value!r}")
            return _equals(key, value) if operator == "==" else {"$not": _equals(key, value)}
        case "in" | "not in":
            if not isinstance(value, list):
                raise FilterError(f"{operator} takes a list; got {type(value).__name__}")
            any_of: Filters = {"$or": [_equals(key, one) for one in value]} if value else NOTHING
            return any_of if operator == "in" else {"$not": any_of}
        case _ if operator in _SIGNS:
            return NOTHING if value is None else {key: {_SIGNS[operator]: _ordered(value)}}
    raise FilterError(f"there is no operator {operator!r}; known: ==, !=, >, >=, <, <=, in, not in")


def _equals(key: str, value: Any) -> Filters:
    value = value.isoformat() if isinstance(value, datetime) else value
    return {"$or": [{key: {"$exists": False}}, {key: {"$eq": None}}]} if value is None else {key: {"$eq": value}}


def _ordered(value: Any) -> int | float | str:
    """What can be smaller or larger: a number, or a date in the ISO form."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            raise FilterError(f"texts are ordered where they are dates in the ISO form; got {value!r}") from None
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FilterError(f"numbers and dates are ordered; got {type(value).__name__}")
    return value
