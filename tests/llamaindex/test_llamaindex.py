"""In a real index and a real ingestion pipeline of LlamaIndex, with filters, deletion by document, and async."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import ImageNode, IndexNode, NodeRelationship, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from homing.errors import InvalidArgument, ModelMismatch, ProviderUnavailable
from homing.llamaindex import HomingEmbedding, HomingRetriever, HomingVectorStore
from homing.testing.fake import FakeEmbedder

STORES = ["folder", pytest.param("lance", marks=pytest.mark.slow), pytest.param("postgres", marks=pytest.mark.slow)]


@pytest.fixture
def model() -> HomingEmbedding:
    return HomingEmbedding(FakeEmbedder(64))


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HomingVectorStore]:
    place = {"folder": str(tmp_path / "data"), "lance": f"lance://{tmp_path / 'lance'}"}.get(request.param)
    if place is None:
        place = f"{request.getfixturevalue('database').url}?schema=i_{secrets.token_hex(5)}"
    made = HomingVectorStore(place)
    yield made
    made.close()


DOCUMENTS = [
    Document(text="退款政策：收到货后七天内可以申请退款。", doc_id="refund", metadata={"lang": "zh", "year": 2024}),
    Document(text="Refunds are paid within seven days.", doc_id="refunds", metadata={"lang": "en", "year": 2026}),
    Document(text="The cat sleeps. 猫在睡觉。", doc_id="cat", metadata={"lang": "both", "tags": ["pet", "宠物"]}),
]


def documents(found: list[Any]) -> list[str | None]:
    return [one.node.ref_doc_id for one in found]


async def test_an_index_stands_on_it(store: HomingVectorStore, model: HomingEmbedding) -> None:
    context = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex.from_documents(DOCUMENTS[:2], storage_context=context, embed_model=model)
    index.insert(DOCUMENTS[2])
    for query, first in [("申请退款", "refund"), ("refunds paid", "refunds"), ("cat 睡觉", "cat")]:
        hybrid = index.as_retriever(similarity_top_k=2, vector_store_query_mode="hybrid")
        assert documents(hybrid.retrieve(query))[0] == first
        assert documents(await hybrid.aretrieve(query))[0] == first
        words = index.as_retriever(similarity_top_k=1, vector_store_query_mode="text_search")
        assert documents(words.retrieve(query)) == [first]
    meaning = index.as_retriever(similarity_top_k=3)
    found = meaning.retrieve("The cat sleeps. 猫在睡觉。")
    assert documents(found)[0] == "cat"
    assert len(found) == 3
    assert all(0 <= (one.score or 0) <= 1 for one in found)
    assert found[0].node.get_content() == "The cat sleeps. 猫在睡觉。"
    assert found[0].node.metadata == DOCUMENTS[2].metadata

    await index.adelete_ref_doc("cat")
    index.delete_ref_doc("never there")
    assert documents(meaning.retrieve("The cat sleeps.")) != []
    assert "cat" not in documents(index.as_retriever(similarity_top_k=9).retrieve("The cat sleeps. 猫在睡觉。"))
    again = VectorStoreIndex.from_vector_store(store, embed_model=model)
    assert set(documents(again.as_retriever(similarity_top_k=9).retrieve("退款"))) == {"refund", "refunds"}


def nodes() -> list[TextNode]:
    values: list[dict[str, Any]] = [
        {"lang": "zh", "year": 2024, "tags": ["a", "b"]},
        {"lang": "en", "year": 2025, "tags": ["b"]},
        {"lang": "en", "year": 2026, "tags": []},
        {"lang": "", "rate": 0.5},
    ]
    return [TextNode(id_=str(at), text=f"文本 text {at}", metadata=one) for at, one in enumerate(values)]


FILTERS = [
    ("lang", "==", "en"),
    ("lang", "!=", "en"),
    ("year", ">", 2024),
    ("year", ">=", 2025),
    ("year", "<", 2026),
    ("year", "<=", 2024),
    ("year", "in", [2024, 2026]),
    ("year", "nin", [2024, 2026]),
    ("rate", "<", 1),
    ("tags", "contains", "a"),
    ("tags", "any", ["a", "c"]),
    ("tags", "all", ["a", "b"]),
    ("tags", "is_empty", None),
    ("lang", "is_empty", None),
    ("none", "is_empty", None),
]


def test_filters_mean_what_they_mean_to_llamaindex(store: HomingVectorStore) -> None:
    theirs = SimpleVectorStore()
    for one in (kept := nodes()):
        one.embedding = [1.0, 0.1 * int(one.node_id)]
    store.add(kept)
    theirs.add(kept)
    single = [MetadataFilter(key=key, operator=FilterOperator(sign), value=value) for key, sign, value in FILTERS]
    sets = [[one] for one in single] + [single[:1] + single[2:3], single[5:7]]
    for chosen in sets:
        for condition in FilterCondition:
            wanted = MetadataFilters(filters=list(chosen), condition=condition)
            query = VectorStoreQuery([1.0, 0.0], 9, filters=wanted)
            expected = set(theirs.query(query).ids or [])
            assert set(store.query(query).ids or []) == expected, wanted
            assert {one.node_id for one in store.get_nodes(filters=wanted)} == expected, wanted
    nested = MetadataFilters(filters=[single[0], MetadataFilters(filters=single[2:5], condition=FilterCondition.OR)])
    assert {one.node_id for one in store.get_nodes(filters=nested)} == {"1", "2"}
    with pytest.raises(InvalidArgument, match="text_match"):
        store.get_nodes(filters=MetadataFilters(filters=[MetadataFilter(key="a", value="b", operator="text_match")]))


async def test_nodes_come_back_whole_and_are_removed(store: HomingVectorStore) -> None:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="doc-1")}
    given = [
        TextNode(id_="1", text="灯塔", relationships=source, embedding=[0.6, 0.8], metadata={"deep": {"a": [1]}}),
        IndexNode(id_="2", text="指向", index_id="other", relationships=source),
        ImageNode(id_="3", text="picture", image="aGk=", relationships={}),
    ]
    assert await store.async_add(given) == ["1", "2", "3"]
    back = await store.aget_nodes(["3", "1", "2"])
    assert [type(one) for one in back] == [ImageNode, TextNode, IndexNode]
    assert back[1].get_content() == "灯塔"
    assert back[1].ref_doc_id == "doc-1"
    assert back[1].metadata == {"deep": {"a": [1]}}
    assert back[1].get_embedding() == pytest.approx([0.6, 0.8])
    query = VectorStoreQuery(query_str="灯塔 picture 指向", similarity_top_k=9, mode=VectorStoreQueryMode.TEXT_SEARCH)
    assert set((await store.aquery(query)).ids or []) == {"1", "2", "3"}
    query.doc_ids = ["doc-1"]
    query.node_ids = ["1", "3"]
    assert (await store.aquery(query)).ids == ["1"]
    await store.adelete_nodes()
    await store.adelete_nodes(["2"])
    assert [one.node_id for one in store.get_nodes()] == ["1", "3"]
    await store.adelete("doc-1")
    assert [one.node_id for one in store.get_nodes()] == ["3"]
    await store.aclear()
    assert store.get_nodes() == []


def test_queries_of_every_mode(store: HomingVectorStore) -> None:
    rows = {"a": [1.0, 0.0], "b": [0.99, 0.14], "c": [0.5, 0.87], "d": [0.0, 1.0]}
    store.add([TextNode(id_=key, text=f"word-{key} 词", embedding=row) for key, row in rows.items()])

    def ids(mode: str, **more: Any) -> list[str]:
        found = store.query(VectorStoreQuery([1.0, 0.0], 2, query_str="词", mode=VectorStoreQueryMode(mode), **more))
        return found.ids or []

    assert ids("default") == ["a", "b"]
    assert ids("mmr", mmr_threshold=0.1) == ["a", "d"]
    assert ids("hybrid", alpha=1) == ["a", "b"]
    assert len(ids("hybrid", hybrid_top_k=3)) == 3
    assert len(ids("hybrid", alpha=0)) == 2
    with pytest.raises(InvalidArgument, match="svm"):
        ids("svm")
    with pytest.raises(InvalidArgument, match="needs its embedding"):
        store.query(VectorStoreQuery(query_str="词"))
    with pytest.raises(ModelMismatch, match="one collection, one model"):
        store.add([TextNode(text="wide", embedding=[1.0, 2.0, 3.0])])


async def test_an_ingestion_pipeline_fills_it_and_replaces_what_changed(
    store: HomingVectorStore, model: HomingEmbedding
) -> None:
    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=60, chunk_overlap=0), model],
        vector_store=store,
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.UPSERTS,
    )
    pipeline.run(documents=DOCUMENTS)
    assert len(store.get_nodes()) == 3
    assert pipeline.run(documents=DOCUMENTS) == [], "nothing changed"
    changed = Document(text="A dog barks. 狗在叫。", doc_id="cat")
    await pipeline.arun(documents=[*DOCUMENTS[:2], changed])
    assert {one.get_content() for one in store.get_nodes()} == {
        DOCUMENTS[0].text,
        DOCUMENTS[1].text,
        "A dog barks. 狗在叫。",
    }


class Down(HomingEmbedding):
    """A model that is down for queries."""

    def _get_query_embedding(self, query: str) -> list[float]:
        raise ProviderUnavailable("no network")


async def test_the_retriever_finds_by_words_when_the_model_is_down(
    store: HomingVectorStore, model: HomingEmbedding
) -> None:
    context = StorageContext.from_defaults(vector_store=store)
    VectorStoreIndex.from_documents(DOCUMENTS, storage_context=context, embed_model=model)
    only = MetadataFilters(filters=[MetadataFilter(key="lang", value="en")])
    down = Down()
    down._provider = FakeEmbedder(64)
    for used in (model, down, None):
        retriever = HomingRetriever(store, used, similarity_top_k=1)
        assert documents(retriever.retrieve("猫 cat")) == ["cat"]
        assert documents(await retriever.aretrieve(QueryBundle("申请退款"))) == ["refund"]
        narrow = HomingRetriever(store, used, filters=only)
        assert set(documents(narrow.retrieve("cat 退款 refunds"))) == {"refunds"}


async def test_the_embedding_is_the_providers_own(model: HomingEmbedding) -> None:
    rows = FakeEmbedder(64).embed(["灯塔", "lighthouse"]).tolist()
    assert model.get_text_embedding_batch(["灯塔", "lighthouse"]) == rows
    assert await model.aget_text_embedding_batch(["灯塔", "lighthouse"]) == rows
    assert model.get_query_embedding("灯塔") == rows[0] == await model.aget_query_embedding("灯塔")
    assert model.model_name == FakeEmbedder(64).id


def test_a_node_that_comes_again_has_its_new_embedding(store: HomingVectorStore) -> None:
    for row in ([1.0, 0.0], [0.0, 1.0]):
        store.add(
            [TextNode(id_="1", text="同样的 text", embedding=row), TextNode(id_="2", text="另", embedding=[0.6, 0.8])]
        )
    assert store.get_nodes(["1"])[0].get_embedding() == pytest.approx([0.0, 1.0])
    assert store.query(VectorStoreQuery([0.0, 1.0], 1)).ids == ["1"]
