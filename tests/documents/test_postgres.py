"""Documents on PostgreSQL: the same rows, the same promises."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import homing
from homing.config import EmbeddingSettings, Settings
from homing.documents import DocumentService
from homing.engine import Engine
from homing.stores.postgres.store import PostgresStore
from homing.testing.fake import FakeEmbedder
from tests.conftest import Database
from tests.documents.novel import novel
from tests.documents.test_rivals import check_in_order, write_all

Opened = Callable[[], tuple[DocumentService, Engine]]


@pytest.fixture
def opened(database: Database) -> Iterator[Opened]:
    """Opens the documents of the test, as another server would."""
    schema = f"homing_{secrets.token_hex(6)}"
    engines: list[Engine] = []

    def open_one() -> tuple[DocumentService, Engine]:
        engines.append(Engine(PostgresStore(database.url, schema=schema), FakeEmbedder(32)))
        return DocumentService(engines[-1], settle=0.0), engines[-1]

    yield open_one
    for engine in engines:
        engine.close()
        engine.store.close()
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))


def test_documents_are_saved_edited_found_moved_mended_and_deleted(opened: Opened) -> None:
    documents, engine = opened()
    assert documents.projects() == []
    assert documents.documents("p") == []
    text = novel(60)
    assert len(documents.save("p", "d", text).changed) == 60
    saved = documents.save("p", "d", text.replace("第20个夜晚", "第二十个夜晚"))
    assert (len(saved.changed), len(saved.unchanged)) == (1, 59)
    for odd in ("\ud83d half", "a\0b", "\r\r", ""):
        documents.save("p", "odd", odd)
        assert documents.text("p", "odd") == odd
    assert documents.flush(120)
    for mode in ("keyword", "semantic", "hybrid"):
        for project in ("p", None):
            assert len(documents.search(project, "码头的夜晚", mode=mode, min_score=None)) == 20
    [hit] = documents.search("p", "「第二十个夜晚」", mode="keyword")
    assert (hit.metadata["pending"], hit.metadata["document_id"]) == (False, "d")
    ids = [one.id for one in documents.chunks("p", "d")]
    documents.rename("p", "d", "e")
    documents.move("p", "e", "q")
    moved = documents.chunks("q", "e", embeddings=True)
    assert [one.id for one in moved] == ids
    assert all(one.embedding is not None and not one.pending for one in moved)
    engine.store.delete("paragraphs", ids[:5])
    assert len(documents.check()) == 5
    assert documents.reindex().embedded == 5
    assert documents.check() == engine.store.check() == []
    assert documents.update_config(top_k=3).top_k == documents.config().top_k == 3
    assert documents.delete("q", "e")
    assert documents.delete_project("p") == 1
    assert engine.store.ids("paragraphs") == []
    assert engine.work.waiting() == 0


@pytest.mark.slow
def test_servers_that_write_the_same_documents(opened: Opened) -> None:
    names = ("a", "b", "c")
    (one, _), (two, _) = opened(), opened()
    write_all([one, one, two], names)
    check_in_order(*opened(), names)


def test_two_data_folders_on_one_server_mend_nothing_away_of_each_other(database: Database, tmp_path: Path) -> None:
    schema = f"homing_{secrets.token_hex(6)}"
    settings = Settings(store=f"{database.url}?schema={schema}", embedding=EmbeddingSettings(provider=""))
    try:
        with (
            homing.open(tmp_path / "one", settings=settings) as one,
            homing.open(tmp_path / "two", settings=settings) as two,
        ):
            one.documents.save("p", "first", "灯塔在岛上。\n\nThe keeper sleeps.")
            one.memory.remember("knowledge", "钥匙在抽屉里")
            two.documents.save("q", "second", "集市很热闹。")
            for app in (two, one):
                assert app.documents.reindex().removed == 0
                assert app.memory.reindex() >= 0
                assert [info.id for info in app.documents.projects()] == ["p", "q"]
                for word, text in (
                    ("灯塔", "灯塔在岛上。"),
                    ("集市", "集市很热闹。"),
                    ("keeper", "The keeper sleeps."),
                ):
                    assert [hit.text for hit in app.documents.search(None, word, mode="keyword")] == [text]
                assert [hit.text for hit in app.memory.recall("钥匙")] == ["钥匙在抽屉里"]
                assert app.documents.check() == []
    finally:
        with psycopg.connect(database.admin_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))
