"""Tables as people have made them: other columns, other names, other types, other distances."""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from langchain_postgres import Column, PGEngine, PGVectorStore
from langchain_postgres.v2.indexes import DistanceStrategy
from psycopg import sql

from homing.errors import InvalidArgument, RetrievalFailed
from homing.langchain import HomingEmbeddings, HybridRetriever, prepare_table, table_source
from homing.testing.fake import FakeEmbedder
from tests.conftest import Database
from tests.langchain.places import TablePlace, Text

EMBEDDINGS = HomingEmbeddings(FakeEmbedder(128))
TEXTS = ["退款政策：七天内", "Refund policy", "物流说明"]


@pytest.fixture(params=["asyncpg", "psycopg"])
def engine(request: pytest.FixtureRequest, database: Database) -> Iterator[PGEngine]:
    made = PGEngine.from_connection_string(database.url.replace("postgresql://", f"postgresql+{request.param}://"))
    yield made
    made._run_as_sync(made._pool.dispose())


@pytest.fixture
def name(engine: PGEngine) -> Iterator[str]:
    made = f"t_{secrets.token_hex(5)}"
    yield made
    engine.drop_table(made)


def opened(engine: PGEngine, name: str, **how: Any) -> PGVectorStore:
    return PGVectorStore.create_sync(engine, EMBEDDINGS, name, **how)


def test_the_user_may_have_a_column(engine: PGEngine, name: str) -> None:
    engine.init_vectorstore_table(name, 128, metadata_columns=[Column("owner", "bigint"), Column("lang", "text")])
    store = opened(engine, name, metadata_columns=["owner", "lang"])
    for user in (1, 2):
        store.add_texts(TEXTS, metadatas=[{"owner": user, "lang": "zh", "n": n} for n in range(3)])
    prepare_table(store, user_key="owner")
    prepare_table(store, user_key="owner")
    found = HybridRetriever(store, 2, user_key="owner", min_similarity=-1.0).invoke("退款政策")
    assert [(one.metadata["owner"], one.metadata["lang"]) for one in found] == [(2, "zh")] * 3
    narrowed = HybridRetriever(store, 2, user_key="owner", filter={"lang": "en"}).invoke("退款政策")
    assert narrowed == []
    assert HybridRetriever(store, 1, user_key="owner", filter={"n": {"$lt": 1}}).invoke("退款")[0].metadata["n"] == 0


def test_names_with_odd_signs_are_names(engine: PGEngine, database: Database) -> None:
    odd = f"odd table:{secrets.token_hex(3)}"
    # Where there is a schema of the user's name, a table without one would be in there.
    table = sql.Identifier("public", odd)
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(
            sql.SQL('CREATE TABLE {} ("the id" text PRIMARY KEY, "Content:x" text, "e" vector(128), "m" jsonb)').format(
                table
            )
        )
        for user, text in ((1, TEXTS[0]), (2, TEXTS[0])):
            vector = str(EMBEDDINGS.embed_query(text))
            connection.execute(
                sql.SQL("INSERT INTO {} VALUES (%s, %s, %s::vector, %s)").format(table),
                (str(uuid.uuid4()), text, vector, json.dumps({"it's: userId": user})),
            )
    store = opened(
        engine, odd, id_column="the id", content_column="Content:x", embedding_column="e", metadata_json_column="m"
    )
    retriever = HybridRetriever(store, 2, user_key="it's: userId")
    prepare_table(store, user_key="it's: userId")
    (found,) = retriever.invoke("退款政策")
    assert found.metadata["it's: userId"] == 2
    assert (found.metadata["vectorRank"], found.metadata["keywordRank"]) == (1, 1)
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP TABLE {}").format(table))


@pytest.mark.parametrize("distance", list(DistanceStrategy), ids=lambda one: one.name)
def test_similarity_is_the_cosine_whatever_the_store_orders_by(
    engine: PGEngine, name: str, distance: DistanceStrategy
) -> None:
    engine.init_vectorstore_table(name, 128)
    store = opened(engine, name, distance_strategy=distance)
    store.add_texts(TEXTS, metadatas=[{"userId": 1}] * 3)
    (first, *_) = HybridRetriever(store, 1).invoke(TEXTS[1])
    assert first.page_content == TEXTS[1]
    assert first.metadata["similarity"] == pytest.approx(1, abs=1e-4)


def test_other_embeddings_may_ask(engine: PGEngine, name: str) -> None:
    engine.init_vectorstore_table(name, 128)
    store = opened(engine, name)
    store.add_texts(TEXTS, metadatas=[{"userId": 1}] * 3)
    assert len(HybridRetriever(store, 1, embeddings=FakeEmbedder(128)).invoke("退款政策")) == 1
    narrow = HybridRetriever(store, 1, embeddings=FakeEmbedder(16)).retrieve("退款政策")
    assert (narrow.mode, len(narrow)) == ("keyword", 1)


def test_a_table_that_cannot_say_whose_a_row_is_is_refused(engine: PGEngine, name: str) -> None:
    engine.init_vectorstore_table(name, 128, store_metadata=False)
    with pytest.raises(InvalidArgument, match="whose"):
        HybridRetriever(opened(engine, name), 1)
    with pytest.raises(InvalidArgument, match="PGVectorStore"):
        prepare_table(object())


def test_a_table_that_was_made_anew_is_looked_up_again(engine: PGEngine, name: str, database: Database) -> None:
    engine.init_vectorstore_table(name, 128)
    store = opened(engine, name)
    store.add_texts(TEXTS, metadatas=[{"userId": 1}] * 3)
    retriever = HybridRetriever(store, 1)
    assert len(retriever.invoke("退款政策")) == 1
    with psycopg.connect(database.url, autocommit=True) as connection:
        table = sql.Identifier(name)
        connection.execute(sql.SQL("ALTER TABLE {} ALTER langchain_metadata TYPE jsonb").format(table))
    # Whichever leg comes first finds out; the other may be in time to see the table as it is.
    with suppress(RetrievalFailed):
        assert retriever.invoke("退款政策")[0].metadata["degraded"]
    assert [one.metadata["degraded"] for one in retriever.invoke("退款政策")] == [None]
    assert len(HybridRetriever(store, 1).invoke("退款政策")) == 1


def test_a_policy_of_the_server_is_a_second_fence_around_a_table(database: Database, table: TablePlace) -> None:
    if database.url == database.admin_url:
        pytest.skip("a superuser sees over the fence")
    from homing.langchain import prepare_table

    table.add(1, [Text("苹果 一")])
    table.add(2, [Text("苹果 二")])
    prepare_table(table.vector_store, row_security=True)
    with psycopg.connect(database.url, autocommit=True) as session:
        count = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table.name))
        assert session.execute(count).fetchone() == (0,)
        session.execute("SET homing.user_id = '2'")
        assert session.execute(count).fetchone() == (1,)
    assert [one.page_content for one in table.retriever(2).invoke("苹果")] == ["苹果 二"]
    with psycopg.connect(database.url, autocommit=True) as session:
        # Our condition is still the first fence: without the second, the answer is the same.
        session.execute(sql.SQL("ALTER TABLE {} DISABLE ROW LEVEL SECURITY").format(sql.Identifier(table.name)))
    assert [one.page_content for one in table.retriever(1).invoke("苹果")] == ["苹果 一"]


def test_an_index_full_of_other_users_rows_hides_none_of_ours(database: Database) -> None:
    name = psycopg.conninfo.conninfo_to_dict(database.url)["user"]
    with psycopg.connect(database.admin_url, autocommit=True) as admin:
        # Tables this small are read from end to end; this role prefers the index, as large tables do.
        admin.execute(f"ALTER ROLE {name} SET enable_seqscan = off; ALTER ROLE {name} SET enable_sort = off")
        place = TablePlace(database)
        try:
            near, far = "苹果 香蕉 樱桃", "苹果 完全 不同 的 事情 在 这里 说明"
            place.insert([(f"{near} {n}", {"userId": 2}) for n in range(400)])
            place.add(1, [Text(f"{far} {n}") for n in range(7)])
            table = sql.Identifier(place.name)
            with psycopg.connect(database.url, autocommit=True) as connection:
                connection.execute(sql.SQL("CREATE INDEX ON {} USING hnsw (embedding vector_cosine_ops)").format(table))
            hidden = place.vector_store.similarity_search_with_score(near, k=10, filter={"userId": {"$eq": 1}})
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(table_source, "FEW", 1)
                found = place.retriever(1, limit=10, leg_limit=10, min_similarity=-1.0).retrieve(near)
            assert len(hidden) < 7, "the index was not used, so this shows nothing"
            assert len(found) == 7
            assert all(hit.legs[0].leg == "vector" for hit in found)
        finally:
            place.close()
            admin.execute(f"ALTER ROLE {name} RESET enable_seqscan; ALTER ROLE {name} RESET enable_sort")
