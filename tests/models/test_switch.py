"""A change of the default model: nobody loses an answer, and whatever stops it, it goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import homing
from homing.app import Homing
from homing.config import Settings
from homing.embedders.local import LocalProvider
from homing.engine.search import HybridOptions
from homing.errors import EmbeddingError, InvalidKey, NotFound
from homing.models.records import LLMModel
from homing.models.switch import BATCH
from homing.records import VectorRecord
from homing.testing.loopback import Fault, LoopbackApi
from tests import forked
from tests.models.conftest import KEY
from tests.models.remote import add_remote_model

pytestmark = pytest.mark.slow

OLD = LocalProvider().id
NEW = "openai/text-embedding-3-small@512"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Homing]:
    with homing.open(tmp_path / "data", settings=Settings()) as app:
        yield app


@pytest.fixture
def remote(app: Homing, api: LoopbackApi) -> LLMModel:
    return add_remote_model(app, api, KEY)


def fill(app: Homing, count: int = 150) -> None:
    app.add({f"n{number}": f"第{number}则笔记：灯塔 {number} lighthouse" for number in range(count)}, "notes")


def rest(app: Homing) -> None:
    """Let nobody embed in the background, as in a process that only reads."""
    app.engine.worker.stop(drain=False)


def nearest(app: Homing, query: str, collection: str = "notes") -> list[str]:
    found = app.search(query, collection, options=HybridOptions(limit=3, mode="semantic"))
    assert not found.degraded, found.reason
    return [hit.id for hit in found]


def test_the_old_model_answers_until_the_new_vectors_are_there(app: Homing, remote: LLMModel, api: LoopbackApi) -> None:
    fill(app)
    rest(app)
    app.switch.make_default(remote)
    assert app.embedder is not None
    assert app.embedder.id == NEW
    assert nearest(app, "灯塔 42")[0] == "n42"
    status = app.switch.status()
    assert (status.default, status.finished) == (NEW, False)
    assert status.collections[0].models[0].model == OLD
    seen: list[tuple[int, int]] = []
    assert app.switch.run(lambda done, total: seen.append((done, total))) == 1
    assert seen[-1] == (150, 150)
    assert seen[0][0] == BATCH
    assert nearest(app, "灯塔 42")[0] == "n42"
    status = app.switch.status()
    assert status.finished
    assert [(one.model, one.embedded) for one in status.collections[0].models] == [(NEW, 150), (OLD, 150)]
    assert app.store.check() == []
    assert app.switch.run() == 0


def test_a_worker_follows_the_new_default_by_itself(app: Homing, remote: LLMModel) -> None:
    fill(app)
    app.switch.make_default(remote)
    wait_until(lambda: app.switch.status().finished)
    assert nearest(app, "灯塔 42")[0] == "n42"
    assert {record.model for record in app.store.records("notes")} == {NEW}


def test_new_collections_use_the_new_model_at_once(app: Homing, remote: LLMModel, api: LoopbackApi) -> None:
    fill(app, 10)
    rest(app)
    app.switch.make_default(remote)
    app.engine.collection("notes").write([VectorRecord("y", "notes", None, {}, "旧的集合里的新笔记")])
    app.engine.collection("fresh").write([VectorRecord("x", "fresh", None, {}, "新的集合")])
    app.engine.embed_written()
    assert app.store.get("fresh", ["x"])[0].model == NEW
    assert OLD in {one.model for one in app.store.models("notes") if one.embedded == 11}
    assert nearest(app, "旧的集合里的新笔记")[0] == "y"
    app.switch.run()
    assert app.store.get("notes", ["y"])[0].model == NEW
    assert nearest(app, "旧的集合里的新笔记")[0] == "y"


def test_what_is_written_while_it_runs_is_brought_over_too(app: Homing, remote: LLMModel) -> None:
    fill(app)

    def write(done: int, total: int) -> None:
        if done <= 150:
            app.add({f"late{done}": f"迟到的笔记 {done}", "n7": f"改写过的笔记 {done}"}, "notes")
            app.engine.collection("notes").delete(["n8"])

    rest(app)
    app.switch.make_default(remote)
    app.switch.run(write)
    app.engine.flush()
    assert {record.model for record in app.store.records("notes")} == {NEW}
    assert nearest(app, "改写过的笔记 150")[0] == "n7"
    assert app.store.get("notes", ["n8"]) == []
    assert app.store.check() == []


def test_new_texts_are_found_by_meaning_while_everything_is_embedded_again(
    app: Homing, remote: LLMModel, api: LoopbackApi
) -> None:
    fill(app)
    rest(app)
    app.switch.make_default(remote)
    api.always = Fault(status=503)
    app.engine.worker.follow()
    app.add({"new": "切换期间写的海边故事"}, "notes")
    assert nearest(app, "切换期间写的海边故事")[0] == "new"
    assert app.store.model_of("notes") == OLD
    api.always = None
    app.switch.run()
    assert nearest(app, "切换期间写的海边故事")[0] == "new"
    assert {record.model for record in app.store.records("notes")} == {NEW}


def test_rolling_back_embeds_only_what_is_new_and_can_itself_be_undone(
    app: Homing, remote: LLMModel, api: LoopbackApi
) -> None:
    fill(app)
    app.switch.make_default(remote)
    app.switch.run()
    app.add({"since": "切换之后写的笔记"}, "notes")
    rest(app)
    assert app.switch.rollback().model_key == "all-MiniLM-L6-v2-zh"
    assert app.embedder is not None
    assert app.embedder.id == OLD
    assert nearest(app, "灯塔 42")[0] == "n42"
    asked = len(api.requests)
    app.switch.run()
    assert len(api.requests) == asked
    assert nearest(app, "切换之后写的笔记")[0] == "since"
    assert {record.model for record in app.store.records("notes")} == {OLD}
    app.switch.rollback()
    assert nearest(app, "灯塔 42")[0] == "n42"
    assert app.switch.status().default == NEW
    assert app.store.check() == []


def test_rolling_back_half_way_keeps_what_answered(app: Homing, remote: LLMModel, api: LoopbackApi) -> None:
    fill(app)
    rest(app)
    app.switch.make_default(remote)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        app.switch.run(stop)
    app.switch.rollback()
    assert app.switch.status().finished
    assert nearest(app, "灯塔 42")[0] == "n42"
    assert app.embedder is not None
    assert app.embedder.id == OLD


def test_without_a_switch_or_without_the_old_vectors_there_is_no_way_back(app: Homing, remote: LLMModel) -> None:
    fill(app, 5)
    with pytest.raises(NotFound, match="no earlier model"):
        app.switch.rollback()
    app.switch.make_default(remote)
    app.switch.run()
    assert app.switch.discard() == 5
    with pytest.raises(NotFound, match="homing models default all-MiniLM-L6-v2-zh"):
        app.switch.rollback()


def test_a_model_that_does_not_answer_is_not_made_the_default(app: Homing, remote: LLMModel) -> None:
    fill(app, 5)
    app.models.config.update_provider("openai", api_key="sk-wrong")
    with pytest.raises(InvalidKey):
        app.switch.make_default(remote)
    assert app.embedder is not None
    assert app.embedder.id == OLD
    assert app.switch.status().finished


def test_a_provider_that_fails_for_a_moment_is_waited_for(
    app: Homing, remote: LLMModel, api: LoopbackApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homing.models.switch.PATIENCE", (0.01, 0.6, 0.6))
    fill(app)
    rest(app)
    app.switch.make_default(remote)
    api.faults = [Fault(status=503)] * 3
    assert app.switch.run() == 1
    assert app.switch.status().finished


def test_a_provider_that_stays_away_stops_the_switch_and_it_goes_on_later(
    app: Homing, remote: LLMModel, api: LoopbackApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homing.models.switch.PATIENCE", ())
    fill(app)
    rest(app)
    app.switch.make_default(remote)
    api.faults = [Fault(), Fault(status=401)]
    with pytest.raises(EmbeddingError, match="INVALID_KEY"):
        app.switch.run()
    status = app.switch.status()
    assert status.state is not None
    assert status.state.error.startswith("INVALID_KEY")
    assert status.collections[0].models[1].embedded == BATCH
    assert nearest(app, "灯塔 42")[0] == "n42"
    assert app.switch.run() == 1
    assert app.switch.status().finished


def test_a_third_model_may_be_chosen_before_the_second_is_there(
    app: Homing, remote: LLMModel, api: LoopbackApi
) -> None:
    fill(app)
    rest(app)
    app.switch.make_default(remote)

    def change_again(done: int, total: int) -> None:
        other = app.models.config.create_model("openai", "text-embedding-3-large", model_config={"dimensions": 256})
        app.switch.make_default(other)

    assert app.switch.run(change_again) == 0
    assert app.switch.status().collections[0].models[0].model == OLD
    assert app.switch.run() == 1
    assert {record.model for record in app.store.records("notes")} == {"openai/text-embedding-3-large@256"}
    app.switch.rollback()
    assert nearest(app, "灯塔 42")[0] == "n42"
    assert app.switch.status().default == OLD


def test_vectors_of_a_model_that_is_gone_degrade_to_keywords_and_are_embedded_again(
    app: Homing, remote: LLMModel
) -> None:
    fill(app, 20)
    rest(app)
    app.switch.make_default(remote)
    app.switch.run()
    default = app.models.config.list_models("embedding")[0]
    app.switch.rollback()
    app.switch.run()
    app.switch.make_default(remote)
    app.switch.run()
    app.models.config.update_model(default.id, is_default=True)
    app.models.config.delete_model(remote.id)
    found = app.search("灯塔 7", "notes")
    assert found.degraded
    assert found.reason == "vector:MODEL_NOT_READY"
    assert "n7" in [hit.id for hit in found]
    app.switch.run()
    assert nearest(app, "灯塔 7")[0] == "n7"


def test_two_at_once_embed_nothing_twice(app: Homing, remote: LLMModel, api: LoopbackApi, tmp_path: Path) -> None:
    fill(app)
    rest(app)
    app.switch.make_default(remote)
    outcomes: list[int] = []
    with homing.open(tmp_path / "data", settings=Settings()) as other:
        threads = [threading.Thread(target=lambda one=one: outcomes.append(one.switch.run())) for one in (app, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(outcome in (0, 1) for outcome in outcomes)
    assert len(texts_sent(api)) == 150
    assert app.switch.status().finished


def texts_sent(api: LoopbackApi) -> list[str]:
    """Every text that was sent to be embedded, but for those that only try whether the model answers."""
    return [text for one in api.requests for text in one.body["input"] if "lighthouse" in text]


def environ() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if name == "HOMING_DATA" or not name.startswith("HOMING_")
    }


def start(*arguments: str) -> forked.Process:
    return forked.start_python(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ())


def homing_started(*arguments: str) -> forked.Process:
    return forked.start(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ())


def test_searches_in_another_process_notice_neither_the_switch_nor_a_kill(
    app: Homing, remote: LLMModel, api: LoopbackApi, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fill(app, 3 * BATCH)
    rest(app)
    data, stop, changed = str(tmp_path / "data"), tmp_path / "stop", tmp_path / "changed"
    searcher = start(str(Path(__file__).with_name("searcher.py")), data, str(stop), str(changed))
    request.addfinalizer(searcher.kill)
    assert searcher.stdout is not None
    assert searcher.stdout.readline().strip() == "ready"
    # The second batch never gets its answer: that is when the process is killed.
    api.faults = [Fault(), Fault(), Fault(delay=600)]
    switching = homing_started("models", "default", "text-embedding-3-small", "--json", "--data", data)
    wait_until(lambda: len([one for one in api.requests if len(one.body["input"]) == BATCH]) == 2)
    status = app.switch.status()
    assert status.state is not None
    assert status.state.running
    switching.send_signal(signal.SIGKILL)
    switching.communicate()
    assert app.switch.status().collections[0].models[0].model == OLD
    assert app.switch.status().collections[0].models[1].embedded == BATCH
    api.faults = []
    resumed = homing_started("models", "default", "--json", "--data", data)
    out, err = resumed.communicate(timeout=300)
    assert resumed.returncode == 0, err
    assert json.loads(out)["finished"]
    wait_until(changed.exists)
    stop.touch()
    out, err = searcher.communicate(timeout=300)
    told = json.loads(out)
    assert (told["errors"], told["degraded"], told["empty"], told["wrong"]) == ([], [], 0, 0), err
    # One cosine by the old model and one by the new one, and nothing else: never a mix.
    assert len(told["cosines"]) == 2
    assert {record.model for record in app.store.records("notes")} == {NEW}
    assert app.store.check() == []


def test_in_the_background_the_command_returns_at_once_and_status_follows(
    app: Homing, remote: LLMModel, api: LoopbackApi, tmp_path: Path
) -> None:
    fill(app, 2 * BATCH)
    rest(app)
    # Whether it answers at all is tried first; then it takes its time.
    over = threading.Event()
    api.faults, api.always = [Fault()], Fault(text=lambda answer: answer if over.wait(600) else "")
    data = ["--json", "--data", str(tmp_path / "data")]
    begun = homing_started("models", "default", "text-embedding-3-small", "--background", *data)
    out, err = begun.communicate(timeout=300)
    assert begun.returncode == 0, err
    assert not json.loads(out)["finished"]
    api.always = None
    over.set()
    wait_until(lambda: app.switch.status().finished)
    undone = homing_started("models", "rollback", *data)
    out, err = undone.communicate(timeout=300)
    assert undone.returncode == 0, err
    assert json.loads(out)["default"] == OLD
    assert nearest(app, "灯塔 42")[0] == "n42"


def wait_until(happened: object, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not happened():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_collections_on_lancedb_change_over_as_well(tmp_path: Path, api: LoopbackApi) -> None:
    settings = Settings(store=f"lance://{tmp_path}/lance")
    with homing.open(tmp_path / "data", settings=settings) as app:
        fill(app, 20)
        config = app.models.config
        config.ensure_default_embedding_model()
        config.create_provider("openai", "openai", api_key=KEY, base_url=api.url + "/v1")
        app.switch.make_default(
            config.create_model("openai", "text-embedding-3-small", model_config={"dimensions": 512})
        )
        assert nearest(app, "灯塔 7")[0] == "n7"
        assert app.switch.run() == 1
        assert nearest(app, "灯塔 7")[0] == "n7"
        assert {record.model for record in app.store.records("notes")} == {NEW}
        app.switch.rollback()
        assert nearest(app, "灯塔 7")[0] == "n7"
        assert {record.model for record in app.store.records("notes")} == {OLD}
        assert app.store.check() == []
