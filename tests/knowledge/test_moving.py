"""A knowledge base that moves to another engine: every user finds their files again, and nobody else's."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import homing
from homing.app import Homing
from homing.cli.main import app as shell
from homing.config import EmbeddingSettings, Settings
from homing.database.postgres.sessions import Sessions
from homing.engine import Engine
from homing.errors import ProviderUnavailable
from homing.knowledge import CHUNKS, KnowledgeBase
from homing.moving import move
from homing.records import VectorRecord, text_hash
from homing.server.tokens import Tokens
from homing.server.users import Users
from homing.stores import open_store
from homing.stores.postgres.store import PostgresStore
from homing.stores.sqlite import SqliteStore
from homing.stores.store import NewVector
from homing.testing.fake import FakeEmbedder

pytestmark = pytest.mark.slow

USERS = {
    "owner": "员工每年有十五天带薪年假。",
    "李雷:1": "Refunds are paid within seven days.",
    "bob": "鲍勃的报销单。",
}
NOVEL = "他一个人守着灯塔。\n\n海鸟飞过码头，没有停下。"
HOME = Path(__file__).parents[2] / "examples" / "home" / "loft.json"


def copy(source: str, target: str) -> dict[str, object]:
    done = CliRunner().invoke(shell, ["store", "copy", source, target, "--json"])
    assert done.exit_code == 0, done.output
    told: dict[str, object] = json.loads(done.output)
    return told


def found(data: Path, store: str) -> dict[str, list[str]]:
    settings = Settings(store=store, embedding=EmbeddingSettings(provider=""))
    with homing.open(data, settings=settings) as app:
        return {
            user: [hit.text for name in ("年假", "refunds", "报销") for hit in app.knowledge(user).search(name)]
            for user in USERS
        }


def test_from_sqlite_to_postgres_and_back(new_database: Callable[[], str], tmp_path: Path) -> None:
    data, postgres = tmp_path / "data", new_database()
    with homing.open(data, settings=Settings()) as app:
        for user, text in USERS.items():
            app.knowledge(user).upload(text.encode(), "文件.txt")
        app.memory.remember("knowledge", "The lighthouse is on an island.", entry_id="k1")
        app.documents.save("novel", "ch1", NOVEL)
        app.documents.update_config(top_k=7)
        app.devices.load(HOME)
        Tokens(app.database).create("bob", "read")
        app.engine.flush()
    there = copy(f"sqlite:///{data}/homing.db", postgres)
    expected = {user: [text] for user, text in USERS.items()}
    assert found(tmp_path / "elsewhere", postgres) == expected
    with homing.open(tmp_path / "elsewhere", settings=Settings(store=postgres)) as app:
        check_rows(app)
    store = open_store(postgres)
    # Nothing of a user lies where everybody's things are; those are the owner's.
    assert [info.name for info in store.collections() if info.name.startswith(CHUNKS)] == [CHUNKS]
    assert {record.text for record in store.records(CHUNKS)} == {USERS["owner"], *NOVEL.split("\n\n")}
    store.close()
    back = copy(postgres, f"sqlite:///{tmp_path}/back.db")
    assert back == there
    assert found(tmp_path / "third", f"sqlite:///{tmp_path}/back.db") == expected
    with homing.open(tmp_path / "third", settings=Settings(store=f"sqlite:///{tmp_path}/back.db")) as app:
        check_rows(app)


def check_rows(app: Homing) -> None:
    """What stands beside the records is there too, and agrees with them."""
    assert app.documents.text("novel", "ch1") == NOVEL
    assert [hit.metadata["document_id"] for hit in app.documents.search("novel", "灯塔", top_k=1)] == ["ch1"]
    assert [file.name for file in app.knowledge().list()] == ["文件.txt"]
    assert [file.embedded for user in USERS for file in app.knowledge(user).list()] == [True] * len(USERS)
    assert app.documents.check() == app.store.check() == []
    assert app.documents.config().top_k == 7
    assert app.memory.get("knowledge", ["k1"])["k1"].text == "The lighthouse is on an island."
    assert app.devices.home is not None
    assert [token.user for token in Tokens(app.database).all()] == ["bob"]
    # It is written on as if it had always been there.
    app.documents.save("novel", "ch1", NOVEL + "\n\n天亮了。")
    app.documents.save("novel", "ch1", NOVEL)
    assert app.knowledge("bob").upload("鲍勃的报销单。".encode(), "文件.txt").unchanged
    assert app.documents.check() == []


def test_what_waits_goes_on_waiting_where_it_was_moved_to(new_database: Callable[[], str], tmp_path: Path) -> None:
    source = SqliteStore(tmp_path / "homing.db")
    down = FakeEmbedder()
    down.fail_with = ProviderUnavailable("down")
    assert not KnowledgeBase("bob", store=source, embedder=down).upload(USERS["bob"].encode(), "文件.txt").file.embedded
    target = PostgresStore(new_database())
    move(source, target)
    source.close()
    with closing(target), closing(Engine(target, FakeEmbedder())) as engine:
        # Nobody asks for bob: the worker of the store finds what waits for him.
        engine.start()
        own = engine.for_user("bob")
        assert own.worker.wait(lambda: not own.work.waiting(), 60)
        assert own.store.pending(CHUNKS) == 0
        assert engine.work.waiting() == own.work.waiting() == 0


class Models:
    """An old model that serves, and a new one that is the default."""

    embeds = True

    def __init__(self) -> None:
        self.old, self.new = FakeEmbedder(model="old"), FakeEmbedder(96, model="new")
        self.default = self.old

    def provider(self, identity: str = "") -> FakeEmbedder:
        return {"": self.default, self.old.id: self.old, self.new.id: self.new}[identity]


def test_a_move_that_is_stopped_at_any_write_goes_on_and_so_does_a_change_of_model(
    new_database: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with homing.open(tmp_path, settings=Settings(embedding=EmbeddingSettings(provider=""))) as app:
        app.documents.save("novel", "ch1", NOVEL)
        app.knowledge("bob").upload(USERS["bob"].encode(), "文件.txt")
        app.memory.remember("knowledge", "钥匙在抽屉里", entry_id="k1")
        app.devices.load(HOME)
    models, source, target = Models(), SqliteStore(tmp_path / "homing.db"), PostgresStore(new_database())
    with closing(source), closing(target):
        with closing(Engine(source, models, background=False)) as engine:
            engine.collection("notes").write(VectorRecord(f"{n}", "notes", None, {}, f"第{n}条") for n in range(30))
            assert engine.flush()
            models.default = models.new
            engine.wanted.want("notes", models.new.id)
            engine.wanted.list_missing(engine.wanted.all()[0])
            texts = source.texts("notes", [f"{n}" for n in range(10)])
            rows = models.new.embed([*texts.values()])
            made = [NewVector(key, text_hash(texts[key]), row) for key, row in zip(texts, rows, strict=True)]
            assert len(source.put_vectors("notes", models.new.id, made)) == 10
            models.new.fail_with = ProviderUnavailable("down")
        models.new.fail_with = None

        stops = 0
        while True:
            with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
                patch.setattr(Sessions, "write", _stopping(stops))
                done = move(source, target)
                break
            stops += 1
        assert stops > 10
        assert done.records == len([*source.records("notes"), *source.records(CHUNKS)]) + 2
        assert [one.text for one in target.for_user("bob").records(CHUNKS)] == [USERS["bob"]]
        assert target.check() == []
        with closing(Engine(target, models, background=False)) as engine:
            assert [(one.collection, one.model) for one in engine.wanted.all()] == [("notes", models.new.id)]
            assert target.model_of("notes") == models.old.id
            assert engine.flush()
            assert target.model_of("notes") == models.new.id
            assert [one.embedded for one in target.models("notes") if one.model == models.new.id] == [30]


def _stopping(after: int) -> Callable[..., Any]:
    """Writes that go well so many times, and then are the end of the process."""
    real, left = Sessions.write, iter(range(after))

    def write(self: Sessions, *given: Any, **named: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return real(self, *given, **named)

    return write


def test_between_two_servers(new_database: Callable[[], str], tmp_path: Path) -> None:
    first, second, third = (Settings(store=new_database(), row_security=True) for _ in range(3))
    with homing.open(tmp_path / "data", settings=first) as app, closing(Users(app)) as users:
        for user, text in USERS.items():
            app.knowledge(user).upload(text.encode(), "文件.txt")
        with users.lease("bob") as bob, users.lease("may") as may:
            furnish(bob)
            may.devices.load(HOME)
    copy(first.store, second.store)
    with homing.open(tmp_path / "fenced", settings=second) as app:
        assert app.store.check() == []
    copy(second.store, third.store)
    assert found(tmp_path / "elsewhere", third.store) == {user: [text] for user, text in USERS.items()}
    check_furnished(tmp_path / "elsewhere", third.store)
    with (
        homing.open(tmp_path / "fenced", settings=third) as app,
        closing(Users(app)) as users,
        users.lease("may") as may,
    ):
        assert may.devices.home.devices


def furnish(app: Homing) -> None:
    """Something of everything that a user of a server has."""
    app.documents.save("novel", "ch1", NOVEL)
    app.memory.remember("knowledge", "鲍勃的钥匙在抽屉里", entry_id="k1")
    app.devices.load(HOME)
    app.engine.flush()


def check_furnished(data: Path, store: str) -> None:
    """It is bob's on that server, and nobody else's."""
    with (
        homing.open(data, settings=Settings(store=store)) as app,
        contextlib.closing(Users(app)) as users,
        users.lease("bob") as bob,
        users.lease("eve") as eve,
    ):
        assert bob.documents.text("novel", "ch1") == NOVEL
        assert [entry.text for entry in bob.memory.list("knowledge")] == ["鲍勃的钥匙在抽屉里"]
        assert bob.devices.home.devices
        assert bob.documents.check() == bob.store.check() == []
        for other in (app, eve):
            assert "novel" not in [one.id for one in other.documents.projects()]
            assert not other.memory.list("knowledge")
            assert not other.devices.home.devices


def test_the_folder_of_a_user_becomes_their_part_of_a_server(new_database: Callable[[], str], tmp_path: Path) -> None:
    with homing.open(tmp_path / "data", settings=Settings()) as app, contextlib.closing(Users(app)) as users:
        with users.lease("bob") as bob:
            furnish(bob)
        folder = users.folder("bob")
    server = new_database()
    copied = CliRunner().invoke(shell, ["store", "copy", f"sqlite:///{folder}/homing.db", server, "--user", "bob"])
    assert copied.exit_code == 0, copied.output
    check_furnished(tmp_path / "elsewhere", server)
    refused = CliRunner().invoke(shell, ["store", "copy", server, f"sqlite:///{tmp_path}/x.db", "--user", "bob"])
    assert refused.exit_code != 0
