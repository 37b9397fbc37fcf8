"""No fault of a model keeps anybody from saving, listing, deleting, or searching by words."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import homing
from homing.app import Homing
from homing.config import EmbeddingSettings, ProviderSettings, Settings
from homing.errors import NotFound
from homing.testing.loopback import Fault, LoopbackApi
from tests.faults import FAULTS, opened

KEY = "sk-documents"
STORY = "林婉推开窗，看见灯塔亮了。\n\nThe harbour was empty at dawn."


def remote(api: LoopbackApi, **changes: str) -> Settings:
    there = ProviderSettings.model_validate({"type": "openai", "api_key": KEY, "base_url": f"{api.url}/v1", **changes})
    embedding = EmbeddingSettings(provider_id="there", model="text-embedding-3-small", dimensions=64)
    return Settings(embedding=embedding, providers={"there": there})


# What else a server may do. A slow model is waited for by `reindex`.
UNWELL: dict[str, str] = {"refusing": "", "nobody listens": "http://127.0.0.1:9/v1"}


@pytest.fixture(params=[*(one for one in FAULTS if one != "slow"), *UNWELL])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Homing]:
    with ExitStack() as held:
        if request.param in FAULTS:
            yield held.enter_context(opened(tmp_path, request.param))
            return
        api = held.enter_context(LoopbackApi(key=KEY, always=Fault(status=500)))
        settings = remote(api, base_url=UNWELL[request.param] or f"{api.url}/v1")
        yield held.enter_context(homing.open(tmp_path / "data", settings=settings))


def test_documents_are_kept_listed_found_by_words_and_deleted(app: Homing) -> None:
    documents = app.documents
    assert len(documents.save("p", "d", STORY).changed) == 2
    assert documents.flush(0.5) is False
    assert documents.text("p", "d") == STORY
    assert [(one.id, one.chunks, one.pending) for one in documents.projects()] == [("p", 2, 2)]
    assert [(one.id, one.pending) for one in documents.documents("p")] == [("d", 2)]
    assert [one.pending for one in documents.chunks("p", "d")] == [True, True]
    for project in ("p", None):
        found = documents.search(project, "灯塔", mode="keyword")
        assert ([hit.text for hit in found], found.degraded) == ([STORY.split("\n\n")[0]], False)
        for mode in ("semantic", "hybrid"):
            found = documents.search(project, "harbour", mode=mode)
            assert [hit.text for hit in found] == [STORY.split("\n\n")[1]]
            assert (found.mode, found.degraded) == ("keyword", True)
            assert found.reason is not None
            assert found.reason.startswith("vector:")
            assert found.notice is not None
    assert documents.retrieve("p", "harbour").degraded
    documents.rename("p", "d", "e")
    documents.move("p", "e", "q")
    assert documents.reindex("q").waiting == 2
    assert documents.check() == app.store.check() == []
    assert documents.delete("q", "e")
    with pytest.raises(NotFound):
        documents.text("q", "e")
    assert app.engine.work.waiting() == 0


def test_the_fault_is_said_once_and_not_once_a_batch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(models=tmp_path / "none", embedding=EmbeddingSettings(model="own"))
    with caplog.at_level(logging.WARNING), homing.open(tmp_path / "data", settings=settings) as app:
        for number in range(3):
            app.documents.save(f"p{number}", "d", "\n\n".join(f"第{at}段说的是灯塔。" for at in range(100)))
        app.documents.flush(120)
    told = [one for one in caplog.records if one.name == "homing.engine.batch"]
    assert len(told) == 1


def test_what_was_saved_without_its_model_gets_vectors_when_it_is_back(tmp_path: Path) -> None:
    with LoopbackApi(key=KEY) as api, homing.open(tmp_path / "data", settings=remote(api)) as app:
        api.always = Fault(status=500)
        app.documents.save("p", "d", STORY)
        assert app.documents.flush(0.5) is False
        api.always = None
        never = threading.Event()
        for _ in range(200):
            if app.documents.flush(1) or never.wait(0.1):
                break
        assert app.documents.waiting() == 0
        assert not app.documents.search("p", "灯塔").degraded
