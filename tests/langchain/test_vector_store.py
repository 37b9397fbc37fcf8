"""HomingVectorStore by LangChain's own suite on every store, and what that suite does not ask."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_tests.integration_tests import VectorStoreIntegrationTests

import homing
from homing.config import EmbeddingSettings
from homing.errors import InvalidArgument, ProviderUnavailable
from homing.langchain import HomingEmbeddings, HomingVectorStore, HybridRetriever
from homing.stores.registry import open_store
from homing.testing.fake import FakeEmbedder
from tests.conftest import Database
from tests.effort import SOAK


def address(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    if kind == "postgres":
        database: Database = request.getfixturevalue("database")
        return f"{database.url}?schema=v_{secrets.token_hex(5)}"
    return str(folder / "data") if kind == "folder" else f"lance://{folder / 'lance'}"


STORES = ["folder", pytest.param("lance", marks=pytest.mark.slow), pytest.param("postgres", marks=pytest.mark.slow)]


class TestStandard(VectorStoreIntegrationTests):
    """LangChain's suite for vector stores, with its own embeddings; in full on every store."""

    @pytest.fixture(params=STORES if SOAK else STORES[:1])
    def vectorstore(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HomingVectorStore]:
        made = HomingVectorStore(self.get_embeddings(), address(request.param, tmp_path, request))
        yield made
        made.close()


TEXTS = {
    "refund": "退款政策：收到货后七天内可以申请退款。",
    "logistics": "物流说明：下单后两天发货。",
    "refunds": "Refunds are paid within seven days.",
    "cat": "The cat sleeps on the mat. 猫在睡觉。",
}
YEARS = {"refund": 2024, "logistics": 2025, "refunds": 2026, "cat": 2020}


@pytest.fixture(params=STORES)
def texts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HomingVectorStore]:
    made = HomingVectorStore(FakeEmbedder(128), address(request.param, tmp_path, request))
    made.add_texts(list(TEXTS.values()), [{"year": YEARS[one]} for one in TEXTS], ids=list(TEXTS))
    yield made
    made.close()


def ids(found: list[Document]) -> list[str | None]:
    return [one.id for one in found]


async def test_it_finds_by_words_in_both_languages(texts: HomingVectorStore) -> None:
    for query, first in (
        ("申请退款", "refund"), ("refunds paid", "refunds"), ("cat 睡觉", "cat"), ("物流 shipping", "logistics")
    ):  # fmt: skip
        assert ids(texts.similarity_search(query, k=2))[0] == first
        assert ids(await texts.asimilarity_search(query, k=2, mode="keyword"))[0] == first
        assert ids(await texts.as_retriever(search_kwargs={"k": 1}).ainvoke(query)) == [first]


def test_filters_narrow_every_search(texts: HomingVectorStore) -> None:
    where = {"year": {"$gte": 2024, "$lt": 2026}}
    vector = FakeEmbedder(128).embed(["退款"])[0].tolist()
    for found in (
        texts.similarity_search("退款", k=4, filter=where),
        texts.similarity_search_by_vector(vector, k=4, filter=where),
        texts.max_marginal_relevance_search("退款", k=4, filter=where),
        texts.max_marginal_relevance_search_by_vector(vector, k=4, filter=where),
        texts.as_retriever(search_kwargs={"filter": where}).invoke("退款"),
    ):
        assert set(ids(found)) == {"refund", "logistics"}
    with pytest.raises(InvalidArgument, match=r"\$near"):
        texts.similarity_search("退款", filter={"year": {"$near": 3}})
    texts.delete(filter=where)
    assert set(ids(texts.similarity_search("退款", k=4))) <= {"refunds", "cat"}
    texts.delete()
    assert texts.similarity_search("退款 refunds", k=4) == []


def test_scores_are_relevance_between_0_and_1(texts: HomingVectorStore) -> None:
    scored = texts.similarity_search_with_relevance_scores(TEXTS["cat"], k=4)
    assert scored[0][0].id == "cat"
    assert scored[0][1] == pytest.approx(1, abs=0.01)
    assert all(0 <= score <= 1 for _, score in scored)
    assert [score for _, score in scored] == sorted((score for _, score in scored), reverse=True)
    strict = texts.as_retriever(search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.9})
    assert ids(strict.invoke(TEXTS["cat"])) == ["cat"]


def test_marginal_relevance_passes_over_what_says_the_same(texts: HomingVectorStore) -> None:
    texts.add_texts([TEXTS["refund"]] * 2, ids=["copy-1", "copy-2"])
    near = ids(texts.similarity_search(TEXTS["refund"], k=3))
    varied = ids(texts.as_retriever(search_type="mmr", search_kwargs={"k": 3, "lambda_mult": 0.1}).invoke("申请退款"))
    assert set(near) == {"refund", "copy-1", "copy-2"}
    assert len({"refund", "copy-1", "copy-2"} & set(varied)) == 1


def test_users_have_views_that_share_nothing(texts: HomingVectorStore) -> None:
    li, han = texts.for_user("李雷"), texts.for_user("han/mei@mei")
    li.add_texts(["密码 1234"], ids=["refund"])
    han.add_texts(["我的笔记 notes"], ids=["refund"])
    assert [one.page_content for one in li.similarity_search("密码 笔记", k=9)] == ["密码 1234"]
    assert [one.page_content for one in han.similarity_search("密码 笔记", k=9)] == ["我的笔记 notes"]
    assert texts.get_by_ids(["refund"])[0].page_content == TEXTS["refund"]
    retriever = HybridRetriever(li, "李雷", k=3)
    assert [one.page_content for one in retriever.invoke("密码 笔记")] == ["密码 1234"]
    with pytest.raises(InvalidArgument, match="李雷"):
        HybridRetriever(li, "han")
    li.delete()
    assert li.similarity_search("密码", k=9) == []
    assert ids(han.similarity_search("笔记", k=9)) == ["refund"]


class Away(Embeddings):
    """Embeddings that can be away."""

    def __init__(self) -> None:
        self.inner = HomingEmbeddings(FakeEmbedder(64))
        self.away = False

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.away:
            raise ConnectionError("no network")
        return self.inner.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


@pytest.mark.parametrize("kind", STORES[:2])
def test_a_model_that_is_away_costs_vectors_and_never_texts(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    model, place = Away(), address(kind, tmp_path, request)
    texts = HomingVectorStore(model, place)
    texts.add_texts(["在之前 before"], ids=["1"])
    model.away = True
    texts.add_texts(["灯塔 lighthouse"], ids=["2"])
    assert ids(texts.similarity_search("灯塔")) == ["2"]
    assert ids(texts.max_marginal_relevance_search("lighthouse")) == ["2"]
    texts.close()
    again = HomingVectorStore(Away(), place)
    again._texts.engine.flush()
    assert set(ids(again.similarity_search("灯塔", mode="semantic"))) == {"1", "2"}
    again.close()


def test_without_a_place_it_is_the_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMING_DATA", str(tmp_path / "home"))
    texts = HomingVectorStore(FakeEmbedder(64))
    texts.add_texts(["他守着灯塔"], ids=["a"])
    texts.close()
    with homing.open(embedder=FakeEmbedder(64)) as app:
        assert [hit.id for hit in app.search("灯塔", "langchain")] == ["a"]


def test_it_opens_what_is_there(tmp_path: Path) -> None:
    with homing.open(tmp_path / "data", embedder=FakeEmbedder(64)) as app:
        HomingVectorStore(place=app, collection="notes").add_texts(["他守着灯塔"], [{"by": "ann"}], ids=["a"])
        assert app.search("灯塔", "notes")[0].metadata == {"by": "ann"}
        with pytest.raises(InvalidArgument, match="has a model already"):
            HomingVectorStore(FakeEmbedder(64), app)
    store = open_store(tmp_path / "other.db")
    texts = HomingVectorStore.from_texts(["灯塔"], FakeEmbedder(64), place=store, ids=["x"])
    texts.close()
    assert store.ids("langchain") == ["x"], "a store that was given stays open"
    store.close()
    for wrong in (3, b"data", object()):
        with pytest.raises(InvalidArgument, match="data folder"):
            HomingVectorStore(FakeEmbedder(64), wrong)  # type: ignore[arg-type]


def test_wrong_input_is_refused_and_changes_nothing(texts: HomingVectorStore) -> None:
    with pytest.raises(InvalidArgument, match="2 texts and 1 ids"):
        texts.add_texts(["a", "b"], ids=["1"])
    with pytest.raises(InvalidArgument, match="JSON cannot hold"):
        texts.add_texts(["新的 new", "b"], [{}, {"bad": object()}])
    assert texts.similarity_search("新的", k=9, mode="keyword") == []


def test_a_retriever_of_one_user_goes_by_the_metadata_of_a_shared_collection(tmp_path: Path) -> None:
    texts = HomingVectorStore(FakeEmbedder(64), tmp_path / "data")
    texts.add_texts(["退款密码 1234", "退款政策"], [{"userId": 1}, {"userId": 2}], ids=["1", "2"])
    assert ids(HybridRetriever(texts, 2, k=5).invoke("退款")) == ["2"]
    with pytest.raises(InvalidArgument, match="two names of one option"):
        HybridRetriever(texts, 2, k=5, limit=3)
    texts.close()


def test_a_dead_embedder_of_ours_is_no_error_either(tmp_path: Path) -> None:
    texts = HomingVectorStore(FakeEmbedder(64, fail_with=ProviderUnavailable("down")), tmp_path / "data")
    texts.add_texts(["灯塔 lighthouse"], ids=["a"])
    found = texts.similarity_search_with_relevance_scores("灯塔")
    assert found[0][0].id == "a"
    assert 0 < found[0][1] <= 1
    texts.close()


def test_a_folder_without_a_model_is_searched_by_words(tmp_path: Path) -> None:
    settings = homing.Settings(embedding=EmbeddingSettings(provider=""))
    with homing.open(tmp_path, settings=settings) as app:
        texts = HomingVectorStore(place=app)
        texts.add_texts(["他守着灯塔 lighthouse"], ids=["a"])
        assert texts.embeddings is None
        assert ids(texts.as_retriever().invoke("灯塔")) == ids(texts.max_marginal_relevance_search("灯塔")) == ["a"]


def test_what_is_no_embedding_is_refused_with_what_a_vector_store_wants(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"a vector store embeds its texts: give it embedding=.* got str"):
        HomingVectorStore("text-embedding-3-small", tmp_path / "data")
