"""A change of the default model reaches every user's knowledge base."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

import homing
from homing.config import Settings
from homing.engine import Engine
from homing.knowledge import CHUNKS, KnowledgeBase
from homing.stores.postgres.store import PostgresStore
from homing.stores.store import MultiUserStore
from homing.testing.fake import FakeEmbedder
from homing.testing.loopback import LoopbackApi

NEW = "openai/text-embedding-3-small@512"
TEXT = "员工每年有十五天带薪年假。" + "城市道路的养护由各区的工程队负责。" * 50 + "食堂中午十二点开门。"


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_every_user_answers_with_the_new_model(
    engine: str, tmp_path: Path, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A database server takes references to keys only.
    monkeypatch.setenv("KEY_OF_THE_TEST", "sk-1")
    users = [f"{engine}-alice", f"{engine}-李雷"]
    settings = Settings(store=new_database() if engine == "postgres" else "")
    with LoopbackApi(key="sk-1") as api, homing.open(tmp_path / "data", settings=settings) as app:
        for user in users:
            app.knowledge(user).upload(TEXT.encode(), "a.txt")
        config = app.models.config
        config.ensure_default_embedding_model()
        config.create_provider("openai", "openai", api_key="${KEY_OF_THE_TEST}", base_url=api.url + "/v1")
        app.switch.make_default(
            config.create_model("openai", "text-embedding-3-small", model_config={"dimensions": 512})
        )
        for user in users:
            assert app.knowledge(user).search("年假")[0].metadata["fileName"] == "a.txt"
        app.switch.run()
        status = app.switch.status()
        assert status.finished
        assert all(any(user in one.collection for one in status.collections) for user in users)
        for user in users:
            if isinstance(app.store, MultiUserStore):
                assert app.store.for_user(user).model_of(CHUNKS) == NEW
            else:
                assert app.store.model_of(f"{CHUNKS}:{user}") == NEW
            found = app.knowledge(user).search("年假")
            assert (found[0].metadata["fileName"], found.degraded) == ("a.txt", False)
            app.knowledge(user).upload(b"written after the change", "b.txt")
            assert app.knowledge(user).search("written after the change")[0].metadata["fileName"] == "b.txt"


def test_the_worker_alone_brings_every_user_over(new_database: Callable[[], str]) -> None:
    store = PostgresStore(new_database())
    for user in ("alice", "李雷"):
        KnowledgeBase(user, store=store, embedder=FakeEmbedder(32, model="old")).upload(TEXT.encode(), "a.txt")
    with closing(store), closing(Engine(store, FakeEmbedder(32, model="new"))) as engine:
        engine.start()
        for user in ("alice", "李雷"):
            view = store.for_user(user)
            assert engine.for_user(user).worker.wait(partial(is_served, view, "fake/new@32"), 60)
            assert view.pending(CHUNKS) == 0


def is_served(view: PostgresStore, model: str) -> bool:
    return view.model_of(CHUNKS) == model
