"""The document store by Haystack's own suites, and its components in pipelines that are written down and read back."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.writers import DocumentWriter
from haystack.dataclasses import ByteStream
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy, FilterPolicy
from haystack.errors import FilterError
from haystack.testing import document_store as suites
from haystack.testing import document_store_async as async_suites
from haystack.testing.document_store import (
    CountDocumentsByFilterTest,
    CountUniqueMetadataByFilterTest,
    DocumentStoreBaseExtendedTests,
    GetMetadataFieldMinMaxTest,
    GetMetadataFieldsInfoTest,
    GetMetadataFieldUniqueValuesTest,
)
from haystack.testing.document_store_async import (
    CountDocumentsAsyncTest,
    CountDocumentsByFilterAsyncTest,
    CountUniqueMetadataByFilterAsyncTest,
    DeleteAllAsyncTest,
    DeleteByFilterAsyncTest,
    DeleteDocumentsAsyncTest,
    FilterDocumentsAsyncTest,
    GetMetadataFieldMinMaxAsyncTest,
    GetMetadataFieldsInfoAsyncTest,
    GetMetadataFieldUniqueValuesAsyncTest,
    UpdateByFilterAsyncTest,
    WriteDocumentsAsyncTest,
)

import homing
from homing.errors import InvalidArgument, ModelMismatch
from homing.haystack import HomingDocumentEmbedder, HomingDocumentStore, HomingHybridRetriever, HomingTextEmbedder
from homing.testing.fake import FakeEmbedder
from tests.effort import SOAK

STORES = ["folder", pytest.param("lance", marks=pytest.mark.slow), pytest.param("postgres", marks=pytest.mark.slow)]


@contextmanager
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HomingDocumentStore]:
    place = {"folder": str(tmp_path / "data"), "lance": f"lance://{tmp_path / 'lance'}"}.get(request.param)
    if place is None:
        place = f"{request.getfixturevalue('database').url}?schema=h_{secrets.token_hex(5)}"
    made = HomingDocumentStore(place)
    yield made
    made.close()


@pytest.fixture(params=STORES)
def document_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HomingDocumentStore]:
    with opened(request, tmp_path) as made:
        yield made


class ById:
    """Documents come back by id, and their embeddings with the rounding of 32 bits; all else is as it was."""

    @staticmethod
    def assert_documents_are_equal(received: list[Document], expected: list[Document]) -> None:
        assert [replace(one, embedding=None) for one in received] == [
            replace(one, embedding=None) for one in sorted(expected, key=lambda one: one.id)
        ]
        by_id = {one.id: one.embedding for one in expected}
        assert all((one.embedding is None) == (by_id[one.id] is None) for one in received)
        assert all(one.embedding == pytest.approx(by_id[one.id], rel=1e-5) for one in received if one.embedding)


class TestStandard(ById, DocumentStoreBaseExtendedTests, CountDocumentsByFilterTest):
    """Haystack's suite, in full on every store."""

    @pytest.fixture(params=STORES if SOAK else STORES[:1])
    def document_store(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HomingDocumentStore]:
        with opened(request, tmp_path) as made:
            yield made

    def test_write_documents(self, document_store: HomingDocumentStore) -> None:  # type: ignore[override]
        one = Document(content="灯塔")
        assert document_store.write_documents([one]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([Document(content="新的"), one])
        self.assert_documents_are_equal(document_store.filter_documents(), [one])


@pytest.fixture
def in_a_folder(tmp_path: Path) -> Iterator[HomingDocumentStore]:
    made = HomingDocumentStore(tmp_path / "data")
    yield made
    made.close()


class TestMetadata(
    CountUniqueMetadataByFilterTest,
    GetMetadataFieldMinMaxTest,
    GetMetadataFieldsInfoTest,
    GetMetadataFieldUniqueValuesTest,
):
    """What it asks about meta, which is counted here and not in a store."""

    @pytest.fixture
    def document_store(self, in_a_folder: HomingDocumentStore) -> HomingDocumentStore:
        return in_a_folder


class TestStandardAsync(
    ById,
    CountDocumentsAsyncTest,
    CountDocumentsByFilterAsyncTest,
    CountUniqueMetadataByFilterAsyncTest,
    DeleteAllAsyncTest,
    DeleteByFilterAsyncTest,
    DeleteDocumentsAsyncTest,
    FilterDocumentsAsyncTest,
    GetMetadataFieldMinMaxAsyncTest,
    GetMetadataFieldsInfoAsyncTest,
    GetMetadataFieldUniqueValuesAsyncTest,
    UpdateByFilterAsyncTest,
    WriteDocumentsAsyncTest,
):
    """And the one of what waits."""

    @pytest.fixture
    def document_store(self, in_a_folder: HomingDocumentStore) -> HomingDocumentStore:
        return in_a_folder

    async def test_write_documents_async(self, document_store: HomingDocumentStore) -> None:
        assert await document_store.write_documents_async([Document(content="灯塔")]) == 1


@pytest.mark.parametrize(
    ("suite", "own"), [(suites, (TestStandard, TestMetadata)), (async_suites, (TestStandardAsync,))]
)
def test_every_suite_that_the_installed_version_has_is_run(suite: Any, own: tuple[type, ...]) -> None:
    there = {one for name, one in vars(suite).items() if isinstance(one, type) and name.endswith(("Test", "Tests"))}
    assert there
    assert [one.__name__ for one in there if not any(issubclass(mine, one) for mine in own)] == []


DOCUMENTS = [
    Document(id="refund", content="退款政策：收到货后七天内可以申请退款。", meta={"lang": "zh", "by": {"name": "ann"}}),
    Document(id="refunds", content="Refunds are paid within seven days.", meta={"lang": "en"}),
    Document(id="cat", content="The cat sleeps. 猫在睡觉。", meta={"lang": "both", "tags": ["pet", "宠物"]}),
]


def ids(found: dict[str, Any]) -> list[str]:
    return [one.id for one in found["documents"]]


async def test_words_find_what_has_no_embedding(document_store: HomingDocumentStore) -> None:
    document_store.write_documents(DOCUMENTS)
    retriever = HomingHybridRetriever(document_store, top_k=1)
    for query, first in [("申请退款", "refund"), ("refunds paid", "refunds"), ("cat 睡觉", "cat")]:
        assert ids(retriever.run(query)) == ids(await retriever.run_async(query)) == [first]
        assert 0 < (retriever.run(query)["documents"][0].score or 0) <= 1
    nested = {"field": "meta.by.name", "operator": "==", "value": "ann"}
    assert ids(retriever.run("退款 refunds", filters=nested, top_k=5)) == ["refund"]
    assert [
        one.id for one in document_store.filter_documents({"field": "tags", "operator": "in", "value": ["宠物"]})
    ] == ["cat"]
    with pytest.raises(FilterError, match="neither"):
        retriever.run("退款", filters={"field": "content", "operator": "==", "value": "x"})


def test_embeddings_of_a_pipeline_find_by_meaning(document_store: HomingDocumentStore) -> None:
    embedder = FakeEmbedder(64)
    rows = embedder.embed([one.content or "" for one in DOCUMENTS]) * 3
    document_store.write_documents(
        [replace(one, embedding=row.tolist()) for one, row in zip(DOCUMENTS, rows, strict=True)]
    )
    query = embedder.embed(["The cat sleeps. 猫在睡觉。"])[0].tolist()
    semantic = HomingHybridRetriever(document_store, mode="semantic", top_k=3)
    assert ids(semantic.run("别的 words", query_embedding=query))[0] == "cat"
    assert ids(semantic.run("", query_embedding=query))[0] == "cat"
    assert ids(HomingHybridRetriever(document_store).run("退款", query_embedding=query))[:2] in (
        ["cat", "refund"],
        ["refund", "cat"],
    )
    document_store.update_by_filter({"field": "id", "operator": "==", "value": "cat"}, {"read": True})
    (cat,) = document_store.filter_documents({"field": "meta.read", "operator": "==", "value": True})
    assert cat.embedding == pytest.approx(rows[2].tolist(), rel=1e-5)
    with pytest.raises(ModelMismatch, match="one collection, one model"):
        document_store.write_documents([Document(content="narrow", embedding=[1.0, 2.0])])


def test_a_store_that_embeds_needs_no_embedder(tmp_path: Path) -> None:
    with homing.open(tmp_path / "data", embedder=FakeEmbedder(64)) as app:
        store = HomingDocumentStore(app, embed=True)
        store.write_documents([replace(DOCUMENTS[2], embedding=[0.5, 0.5]), *DOCUMENTS[:2]])
        assert len(store.filter_documents()[0].embedding or []) == 64
        semantic = HomingHybridRetriever(store, mode="semantic", top_k=1)
        assert ids(semantic.run("The cat sleeps. 猫在睡觉。")) == ["cat"]
        with pytest.raises(InvalidArgument, match="cannot be written to a file"):
            store.to_dict()


def test_what_a_document_holds_comes_back(document_store: HomingDocumentStore) -> None:
    given = [
        Document(id="blob", blob=ByteStream(b"\x00\x01", mime_type="image/png"), meta={"deep": {"a": [1, None, "乙"]}}),
        Document(id="empty", content="", meta={"id": "mine", "none": None, "yes": True}),
    ]
    document_store.write_documents(given)
    assert document_store.filter_documents() == given
    assert document_store.filter_documents({"field": "id", "operator": "in", "value": ["blob"]}) == given[:1]
    assert document_store.write_documents([given[0], given[0]], policy=DuplicatePolicy.OVERWRITE) == 2
    assert document_store.count_documents() == 2


def test_a_pipeline_is_written_to_yaml_and_read_back(tmp_path: Path) -> None:
    store = HomingDocumentStore(str(tmp_path / "library"))
    indexing = Pipeline()
    indexing.add_component("embedder", HomingDocumentEmbedder())
    indexing.add_component("writer", DocumentWriter(store, policy=DuplicatePolicy.OVERWRITE))
    indexing.connect("embedder", "writer")
    asking = Pipeline()
    asking.add_component("embedder", HomingTextEmbedder())
    narrow = {"field": "meta.lang", "operator": "!=", "value": "both"}
    asking.add_component(
        "retriever", HomingHybridRetriever(store, top_k=2, filters=narrow, filter_policy=FilterPolicy.MERGE)
    )
    asking.connect("embedder.embedding", "retriever.query_embedding")

    again = Pipeline.loads(indexing.dumps(), allowed_modules=["homing.haystack"])
    assert again.run({"embedder": {"documents": DOCUMENTS}}) == {"writer": {"documents_written": 3}}
    read = Pipeline.loads(asking.dumps(), allowed_modules=["homing.haystack"])
    assert read.dumps() == asking.dumps()
    for pipeline in (read, asking):
        answer = pipeline.run({"embedder": {"text": "怎么退货还钱"}, "retriever": {"query": "怎么退货还钱"}})
        assert ids(answer["retriever"]) == ["refund", "refunds"]
    store.close()
