"""No fault of a model costs a Python program a text, an answer by words, or more than its deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import homing
from homing.app import Homing
from homing.config import load
from homing.records import Mode, Retrieved
from tests.faults import FAULTS, Faulty, faulty, warnings
from tests.skills.folders import front, write_skill

pytestmark = pytest.mark.slow

HOME = Path(homing.__file__).parent / "examples" / "home.json"
STORY = "林婉推开窗，看见灯塔亮了。\n\nThe harbour was empty at dawn."
# Scans and uploads wait for their vectors; a provider that does not exist is no model to them.
WITHOUT_SLOW = [one for one in FAULTS if one != "slow"]


@pytest.fixture(params=FAULTS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Faulty]:
    with faulty(tmp_path, request.param) as model:
        yield model


@pytest.fixture
def app(model: Faulty, tmp_path: Path) -> Iterator[Homing]:
    with model.open(tmp_path / "data") as app:
        yield app
        model.release()


@pytest.fixture
def by_words(model: Faulty, caplog: pytest.LogCaptureFixture) -> Callable[[Callable[[], Retrieved]], list[str]]:
    """Ask, and see that words answered, why, and that it was said once; returns the texts."""

    def ask(search: Callable[[], Retrieved]) -> list[str]:
        before = len(warnings(caplog.records))
        found = search()
        assert (found.mode, found.degraded) == ("keyword", True)
        assert model.is_reason(found.reason), found.reason
        assert found.notice is not None
        assert len(warnings(caplog.records)) == before + 1
        return [hit.text for hit in found]

    return ask


Ask = Callable[[Callable[[], Retrieved]], list[str]]


def test_texts_are_added_found_and_deleted(model: Faulty, app: Homing, by_words: Ask) -> None:
    end = model.begin(lambda: app.add({"a": "灯塔亮了", "b": "The harbour was empty"}))
    for query, text in (("灯塔", "灯塔亮了"), ("燈塔", "灯塔亮了"), ("harbour", "The harbour was empty")):
        assert by_words(partial(app.search, query)) == [text]
    assert app.engine.collection("default").delete(["b"]) == 1
    assert by_words(lambda: app.search("harbour")) == []
    assert end() == 2
    assert app.store.check() == []


def test_documents_and_memory_are_kept_listed_found_and_deleted(
    app: Homing, by_words: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    assert len(app.documents.save("p", "d", STORY).changed) == 2
    entries = [app.memory.remember(name, f"灯塔看守人 {name}") for name in app.memory.collections]
    assert [one.pending for one in app.documents.documents("p")] == [2]
    assert app.memory.list("knowledge") == entries[:1]
    modes: tuple[Mode, ...] = ("semantic", "hybrid")
    for mode in modes:
        for project in ("p", None):
            assert by_words(partial(app.documents.search, project, "灯塔", mode=mode)) == [STORY[:13]]
        assert len(by_words(partial(app.memory.recall, "灯塔", mode=mode))) == 4
    packed = app.documents.retrieve("p", "harbour")
    assert ([one.text for one in packed.chunks], packed.degraded) == ([STORY[15:]], True)
    found = app.documents.search(None, "harbour", mode="keyword")
    assert ([hit.text for hit in found], found.degraded) == ([STORY[15:]], False)
    assert app.documents.delete("p", "d")
    assert [app.memory.forget(one.collection, [one.id]) for one in entries] == [1, 1, 1, 1]
    assert app.documents.projects() == []
    assert app.store.check() == []


def test_a_sentence_is_answered_by_the_words_of_commands(
    model: Faulty, app: Homing, caplog: pytest.LogCaptureFixture
) -> None:
    assert len(app.devices.load(HOME).added) == 7
    assert warnings(caplog.records) == []
    for number, sentence in enumerate(("打开除卧室以外的灯", "turn off the bedroom light"), start=1):
        answer = app.devices.ask(sentence)
        assert (answer.decision, answer.degraded, answer.mode) == ("act", True, "keyword")
        assert model.is_reason(f"vector:{answer.reason}")
        assert len(warnings(caplog.records)) == number


@pytest.mark.parametrize("model", WITHOUT_SLOW, indirect=True)
def test_a_file_is_kept_listed_found_and_deleted(app: Homing, by_words: Ask) -> None:
    app.knowledge().upload("灯塔看守人住在岛上。".encode(), "story.txt")
    assert [one.name for one in app.knowledge().list()] == ["story.txt"]
    assert by_words(lambda: app.knowledge().search("灯塔")) == ["灯塔看守人住在岛上。"]
    app.knowledge().delete("story.txt")
    assert app.knowledge().list() == []
    assert app.store.check() == []


def test_skills_are_scanned_found_listed_and_removed(
    model: Faulty, app: Homing, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_skill(tmp_path / "skills", "git", front("git-commit", "生成Git提交信息"))
    end = model.begin(lambda: app.skills.scan(tmp_path / "skills"))
    before = len(warnings(caplog.records))
    assert before <= 1
    found = app.skills.find_relevant_skills("提交")
    assert ([one.name for one in found], found.mode, found.degraded) == (["git-commit"], "keyword", True)
    assert model.is_reason(found.reason), found.reason
    assert found.notice is not None
    assert len(warnings(caplog.records)) == before + 1
    assert end().degraded or model.fault == "slow"
    assert [one.name for one in app.skills.list_skills()] == ["git-commit"]
    assert app.skills.remove_skill("git-commit") == 1
    assert app.skills.list_skills() == []
    assert app.store.check() == []


@pytest.mark.parametrize("model", WITHOUT_SLOW, indirect=True)
def test_the_background_says_it_once_and_goes_on_when_the_model_is_there(
    model: Faulty, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with model.open(tmp_path / "data") as app:
        for name in app.memory.collections:
            app.memory.remember(name, "灯塔看守人")
        app.documents.save("p", "d", STORY)
        app.add({"a": "灯塔亮了"})
        assert not app.engine.flush()
        assert not app.engine.flush()
        assert (app.engine.work.waiting(), app.engine.work.backlog().dead) == (7, 0)
        assert warnings(caplog.records) == []
        assert len(caplog.records) == 1
    with homing.open(tmp_path / "data", settings=load(environ={}).settings) as app:
        assert app.engine.flush()
        assert not app.memory.recall("who keeps the lighthouse?").degraded
