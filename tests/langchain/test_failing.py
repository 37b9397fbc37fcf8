"""One leg down, both down, too late, cut off: what is answered, what is said, and what is kept."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest
from langchain_core.embeddings import Embeddings
from langchain_postgres import PGEngine, PGVectorStore
from psycopg import sql

from homing.database.postgres.server import LocalServer
from homing.embedders.openai import OpenAIProvider
from homing.embedders.provider import Kind
from homing.embedders.resilient import Resilient
from homing.errors import (
    InvalidArgument,
    InvalidKey,
    ProviderUnavailable,
    RetrievalFailed,
    StoreError,
    StoreUnavailable,
    Timeout,
)
from homing.langchain import HomingEmbeddings, HybridRetriever
from homing.stores.postgres.store import PostgresStore
from homing.testing.loopback import LoopbackApi
from homing.vectors import Matrix
from tests.conftest import FAST, Database
from tests.langchain.places import Place, SharedPlace, StorePlace, TablePlace, Text, shared_place
from tests.langchain.waiting import Waiting

TEXTS = [Text("退款政策：七天内可以申请退款", "退款.md"), Text("Refund within seven days", "refund.md")]


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno == level and one.name == "homing.langchain"]


def test_a_dead_embedding_api_leaves_the_keywords(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.add(1, TEXTS)
    place.embedder.fail_with = ProviderUnavailable("the embedding API is down")
    retriever = place.retriever(1)
    answer = retriever.retrieve("退款")
    assert [hit.metadata["fileName"] for hit in answer] == ["退款.md"]
    assert (answer.mode, answer.degraded, answer.reason) == ("keyword", True, "vector:PROVIDER_UNAVAILABLE")
    assert "关键词" in str(answer.notice)
    assert messages(caplog, logging.WARNING) == ["向量检索失败，使用关键词检索降级"]
    assert messages(caplog, logging.ERROR) == ["向量检索失败: ProviderUnavailable: the embedding API is down"]
    (found,) = retriever.invoke("退款")
    assert found.metadata["degraded"] == "vector:PROVIDER_UNAVAILABLE"
    assert found.metadata["similarity"] is None


def test_a_rejected_key_is_a_failed_leg_and_stays_secret(store: StorePlace, caplog: pytest.LogCaptureFixture) -> None:
    store.add(1, TEXTS)
    with LoopbackApi(key="sk-right") as api:
        wrong = OpenAIProvider("text-embedding-3-small", api_key="sk-wrong-and-secret", base_url=api.url + "/v1")
        answer = store.retriever(1, embeddings=Resilient(wrong)).retrieve("退款")
    assert answer.reason == f"vector:{InvalidKey.code}"
    assert len(answer) == 1
    assert "sk-wrong" not in caplog.text


def test_a_slow_embedding_is_left_behind_at_the_deadline(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.add(1, TEXTS)
    retriever = place.retriever(1, deadline=1)
    retriever.invoke("退款", deadline=120)
    over = threading.Event()
    embed = place.embedder.embed

    def held(texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        assert over.wait(600)
        return embed(texts, kind=kind)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place.embedder, "embed", held)
        answer = retriever.retrieve("退款")
    over.set()
    assert answer.reason == f"vector:{Timeout.code}"
    assert [hit.metadata["fileName"] for hit in answer] == ["退款.md"]
    assert "向量检索失败，使用关键词检索降级" in messages(caplog, logging.WARNING)
    assert not retriever.retrieve("退款", deadline=120).degraded


def test_a_failed_keyword_leg_leaves_the_vectors(table: TablePlace, caplog: pytest.LogCaptureFixture) -> None:
    table.add(1, TEXTS)
    retriever = table.retriever(1)
    with psycopg.connect(table.url, autocommit=True) as connection:
        # A column that ILIKE cannot search: the vectors do not mind.
        connection.execute(
            sql.SQL("ALTER TABLE {} ALTER content TYPE bytea USING content::bytea").format(sql.Identifier(table.name))
        )
    answer = retriever.retrieve("退款")
    assert (answer.mode, answer.reason) == ("semantic", f"keyword:{StoreError.code}")
    assert len(answer) == 1
    assert messages(caplog, logging.WARNING) == ["关键词检索失败，使用向量检索降级"]


def test_a_missing_index_costs_time_and_nothing_else(table: TablePlace) -> None:
    table.add(1, TEXTS)
    assert not table.retriever(1).retrieve("退款").degraded


def test_both_legs_down_is_one_error_with_both_causes(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.add(1, TEXTS)
    retriever = place.retriever(1)
    place.embedder.fail_with = ProviderUnavailable("the embedding API is down")
    if isinstance(place, StorePlace):
        place.store.close()
    else:
        assert isinstance(place, TablePlace)
        place.engine.drop_table(place.name)
    with pytest.raises(RetrievalFailed, match=r"^知识库检索失败$") as caught:
        retriever.invoke("退款")
    error = caught.value
    assert error.code == "RETRIEVAL_FAILED"
    assert set(error.causes) == {"vector", "keyword"}
    assert isinstance(error.causes["vector"], ProviderUnavailable)
    assert isinstance(error.causes["keyword"], StoreError)
    assert isinstance(error.__cause__, ExceptionGroup)
    assert len(error.__cause__.exceptions) == 2
    both = messages(caplog, logging.ERROR)[-1]
    assert both.startswith("知识库检索失败: ")
    assert "the embedding API is down" in both
    assert type(error.causes["keyword"]).__name__ in both


@pytest.fixture(scope="module")
def own_server(folder_of_servers: object) -> Iterator[LocalServer]:
    server = LocalServer(Path(str(folder_of_servers)) / "langchain", settings=FAST)
    server.start()
    yield server
    server.remove()


# asyncpg does not close a connection whose server has crashed, and says so when it is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
@pytest.mark.parametrize("kind", [StorePlace, TablePlace])
def test_a_server_that_goes_away_is_an_error_and_one_that_is_back_answers(
    own_server: LocalServer, kind: type[StorePlace] | type[TablePlace], caplog: pytest.LogCaptureFixture
) -> None:
    own_server.start()
    place = kind(Database(own_server.url, own_server.admin_url))
    place.add(1, TEXTS)
    retriever = place.retriever(1)
    retriever.invoke("退款")
    own_server.stop(mode="immediate")
    with pytest.raises(RetrievalFailed) as caught:
        retriever.invoke("退款")
    assert {type(one) for one in caught.value.causes.values()} == {StoreUnavailable}
    state = own_server.status().url.rsplit(":", 1)[0].rsplit(":", 1)[-1]
    assert state not in caplog.text, "the password is in the log"
    own_server.start()
    assert not retriever.retrieve("退款").degraded
    place.close()
    gc.collect()


def used(place: Place, *, deadline: float) -> HybridRetriever:
    """A retriever whose connections are open: it has answered once."""
    place.add(1, TEXTS)
    retriever = place.retriever(1, deadline=deadline)
    retriever.invoke("退款", deadline=120)
    return retriever


@pytest.mark.slow
def test_connections_lost_in_mid_search_are_made_again(database: Database, place: Place) -> None:
    retriever = used(place, deadline=120)
    answers = []
    with Waiting(database, *place.kept_in) as lock:
        search = threading.Thread(target=lambda: answers.append(retriever.retrieve("退款")))
        search.start()
        lock.kill(lock.waiting(2))
        lock.waiting(2)
        lock.release()
        search.join(120)
    assert [hit.metadata["fileName"] for hit in answers[0]] == ["退款.md"]
    assert not answers[0].degraded


@pytest.mark.slow
def test_connections_lost_again_and_again_are_an_error_with_both_causes(database: Database, place: Place) -> None:
    retriever = used(place, deadline=120)
    caught: list[Exception] = []

    def search() -> None:
        try:
            retriever.retrieve("退款")
        except RetrievalFailed as error:
            caught.append(error)

    with Waiting(database, *place.kept_in) as lock:
        searching = threading.Thread(target=search)
        searching.start()
        lock.kill(lock.waiting(2))
        lock.kill(lock.waiting(2))
        searching.join(120)
    (error,) = caught
    assert isinstance(error, RetrievalFailed)
    assert {type(one) for one in error.causes.values()} == {StoreUnavailable}
    assert len(retriever.invoke("退款")) == 1


def test_a_database_that_hangs_is_given_up_at_the_deadline(database: Database, place: Place) -> None:
    retriever = used(place, deadline=0.4)
    with Waiting(database, *place.kept_in) as lock:
        with pytest.raises(RetrievalFailed) as caught:
            retriever.invoke("退款")
        assert {getattr(one, "code", "") for one in caught.value.causes.values()} <= {Timeout.code, "STORE_BUSY"}
        lock.release()
    assert len(retriever.invoke("退款", deadline=120)) == 1


def test_embeddings_of_another_width_are_said_to_be(store: StorePlace) -> None:
    from homing.testing.fake import FakeEmbedder

    store.add(1, TEXTS)
    answer = store.retriever(1, embeddings=FakeEmbedder(16)).retrieve("退款")
    assert answer.reason == "vector:MODEL_MISMATCH"
    assert len(answer) == 1


def test_any_langchain_embeddings_will_do(store: StorePlace) -> None:
    class Theirs(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return HomingEmbeddings(store.embedder).embed_query(text)

    store.add(1, TEXTS)
    (found, *_) = store.retriever(1, embeddings=Theirs()).invoke("退款政策")
    assert found.metadata["vectorRank"] == 1


@pytest.mark.parametrize("embeddings", [None, "text-embedding-3", object()])
def test_a_store_needs_embeddings(store: StorePlace, embeddings: object) -> None:
    with pytest.raises(InvalidArgument, match="embeddings"):
        store.retriever(1, embeddings=embeddings)


def test_what_cannot_name_the_user_in_sql_is_refused() -> None:
    from langchain_core.vectorstores import InMemoryVectorStore

    from homing.testing.fake import FakeEmbedder

    with pytest.raises(InvalidArgument, match="PGVectorStore"):
        HybridRetriever(InMemoryVectorStore(HomingEmbeddings(FakeEmbedder())), 1)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"limit": 0}, "limit"),
        ({"minSimilarity": 2}, "minSimilarity"),
        ({"rrfK": -1}, "rrfK"),
        ({"vectorWeight": float("nan")}, "vectorWeight"),
        ({"keyword_weight": -0.1}, "keyword_weight"),
        ({"deadline": 0}, "deadline"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_options_that_cannot_be_served_are_refused_by_name(
    store: StorePlace, options: dict[str, object], named: str
) -> None:
    with pytest.raises(InvalidArgument, match=named):
        store.retriever(1, options)


def test_what_a_retriever_does_not_have_is_refused_by_name(store: StorePlace) -> None:
    with pytest.raises(InvalidArgument, match="lmit"):
        store.retriever(1, lmit=3)
    with pytest.raises(InvalidArgument, match="text"):
        store.retriever(1).invoke({"query": "退款"})  # type: ignore[arg-type]


async def test_an_engine_without_a_loop_answers_asynchronous_calls_only(table: TablePlace) -> None:
    from sqlalchemy.ext.asyncio import create_async_engine

    table.add(1, TEXTS)
    engine = create_async_engine(table.url.replace("postgresql://", "postgresql+asyncpg://"))
    try:
        vector_store = await PGVectorStore.create(
            PGEngine.from_engine(engine), HomingEmbeddings(table.embedder), table.name
        )
        retriever = HybridRetriever(vector_store, 1)
        assert len(await retriever.ainvoke("退款")) == 1
        with pytest.raises(RetrievalFailed) as caught:
            retriever.invoke("退款")
        assert "ainvoke" in str(caught.value.causes["keyword"])
    finally:
        await engine.dispose()


def test_a_store_that_is_gone_says_so(database: Database) -> None:
    place = StorePlace(database)
    place.add(1, TEXTS)
    retriever = place.retriever(1)
    place.close()
    with pytest.raises(RetrievalFailed) as caught:
        retriever.invoke("退款")
    assert all("closed" in str(one) for one in caught.value.causes.values())
    assert isinstance(place.store, PostgresStore)


@pytest.fixture(params=["sqlite", "lance"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SharedPlace]:
    place = shared_place(request.param, tmp_path)
    place.add(1, TEXTS)
    yield place
    place.close()


def test_a_store_without_a_server_is_degraded_by_its_model(
    shared: SharedPlace, caplog: pytest.LogCaptureFixture
) -> None:
    shared.embedder.fail_with = ProviderUnavailable("the embedding API is down")
    answer = shared.retriever(1).retrieve("退款")
    assert [hit.metadata["fileName"] for hit in answer] == ["退款.md"]
    assert (answer.mode, answer.reason) == ("keyword", "vector:PROVIDER_UNAVAILABLE")
    assert answer[0].fused == pytest.approx(0.3 / 61), "ranked by its place, as when both legs answer"
    assert messages(caplog, logging.WARNING) == ["向量检索失败，使用关键词检索降级"]
    assert messages(caplog, logging.ERROR) == ["向量检索失败: ProviderUnavailable: the embedding API is down"]


def test_a_store_without_a_server_that_is_closed_is_one_error_with_both_causes(
    shared: SharedPlace, caplog: pytest.LogCaptureFixture
) -> None:
    retriever = shared.retriever(1)
    shared.store.close()
    with pytest.raises(RetrievalFailed, match=r"^知识库检索失败$") as caught:
        retriever.invoke("退款")
    assert set(caught.value.causes) == {"vector", "keyword"}
    assert all(isinstance(one, StoreError) for one in caught.value.causes.values())
    assert messages(caplog, logging.ERROR)[-1].startswith("知识库检索失败: ")


def test_a_file_whose_words_are_damaged_answers_by_vectors(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = shared_place("sqlite", tmp_path)
    place.add(1, TEXTS)
    assert place.store.database is not None
    place.store.database.write(lambda transaction: transaction.rows("DROP TABLE word_pieces"))
    answer = place.retriever(1).retrieve("退款政策")
    assert (answer.mode, answer.degraded) == ("semantic", True)
    assert str(answer.reason).startswith("keyword:")
    assert [hit.metadata["fileName"] for hit in answer] == ["退款.md"]
    assert answer[0].fused == pytest.approx(0.7 / 61)
    assert messages(caplog, logging.WARNING) == ["关键词检索失败，使用向量检索降级"]
    place.close()
