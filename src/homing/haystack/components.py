"""Components of Haystack pipelines: a hybrid retriever, and embedders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.document_stores.types import FilterPolicy, apply_filter_policy

from homing.app import open_app
from homing.embedders.provider import EmbeddingProvider
from homing.errors import InvalidArgument
from homing.frameworks import in_thread
from homing.haystack.document_store import HomingDocumentStore
from homing.records import Mode


@component
class HomingHybridRetriever:
    """The documents that a query is about, by meaning and by words, best first.

    By meaning where the store embeds, or where `query_embedding` comes with the query; by words in any case, unless
    `mode` is "semantic".
    """

    def __init__(
        self,
        document_store: HomingDocumentStore,
        *,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        mode: Mode = "hybrid",
        filter_policy: FilterPolicy = FilterPolicy.REPLACE,
    ) -> None:
        if not isinstance(document_store, HomingDocumentStore):
            raise TypeError(f"a HomingHybridRetriever searches a HomingDocumentStore; got {type(document_store)}")
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k
        self.mode: Mode = mode
        self.filter_policy = filter_policy

    def to_dict(self) -> dict[str, Any]:
        """The component for a file."""
        return default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            filters=self.filters,
            top_k=self.top_k,
            mode=self.mode,
            filter_policy=self.filter_policy.value,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HomingHybridRetriever:
        """The component that `to_dict` described."""
        given = data["init_parameters"]
        if isinstance(given.get("document_store"), dict):
            given["document_store"] = HomingDocumentStore.from_dict(given["document_store"])
        if "filter_policy" in given:
            given["filter_policy"] = FilterPolicy.from_str(given["filter_policy"])
        made: HomingHybridRetriever = default_from_dict(cls, data)
        return made

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        query_embedding: list[float] | None = None,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
    ) -> dict[str, list[Document]]:
        """The documents, under `documents`."""
        found = self.document_store.retrieve(
            query,
            query_embedding=query_embedding,
            filters=apply_filter_policy(self.filter_policy, self.filters, filters),
            top_k=self.top_k if top_k is None else top_k,
            mode=self.mode,
        )
        return {"documents": found}

    run_async = component.output_types(documents=list[Document])(in_thread(run))


class _Model:
    """The model of a data folder; without one, the bundled model."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder
        self._provider: EmbeddingProvider | None = None

    def to_dict(self) -> dict[str, Any]:
        """The component for a file."""
        return default_to_dict(self, folder=self.folder)

    def warm_up(self) -> None:
        """Find the model, once."""
        if self._provider is None:
            from homing.embedders.local import LocalProvider

            self._provider = LocalProvider() if self.folder is None else open_app(self.folder).embedder
        if self._provider is None:
            raise InvalidArgument(f"the settings of {self.folder!r} say that nothing is embedded; name a model there")

    @property
    def provider(self) -> EmbeddingProvider:
        """The model."""
        self.warm_up()
        assert self._provider is not None
        return self._provider


@component
class HomingTextEmbedder(_Model):
    """Embeds a query, offline by default."""

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """The vector, under `embedding`."""
        return {"embedding": self.provider.embed([text], kind="query")[0].tolist()}


@component
class HomingDocumentEmbedder(_Model):
    """Embeds the contents of documents, offline by default."""

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """The documents with their vectors, under `documents`."""
        rows = self.provider.embed([one.content or "" for one in documents], kind="document").tolist()
        return {"documents": [replace(one, embedding=row) for one, row in zip(documents, rows, strict=True)]}
