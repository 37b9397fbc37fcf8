"""No fault of a model costs a desktop app a document, an answer by words, or a request that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from homing.channels import Channels
from homing.server.application import create_app
from tests.channels.invoking import AFRAID, NOVEL
from tests.faults import OF_EACH_KIND, Faulty, faulty, warnings

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(params=OF_EACH_KIND)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Faulty]:
    with faulty(tmp_path, request.param) as model:
        yield model


@pytest.fixture(params=["stdio", "http"])
def ask(request: pytest.FixtureRequest, model: Faulty, tmp_path: Path) -> Iterator[Ask]:
    """The data that a channel answers, by what every transport goes through and by HTTP."""
    with model.open(tmp_path / "data") as app:
        channels = Channels(app)
        client = TestClient(create_app(app), base_url="http://127.0.0.1", raise_server_exceptions=False)

        def ask(channel: str, **payload: Any) -> dict[str, Any]:
            if request.param == "stdio":
                envelope: dict[str, Any] = dict(channels.invoke(channel, payload))
            else:
                answer = client.post(f"/ipc/{channel}", json=payload)
                assert answer.status_code == 200, answer.text
                envelope = answer.json()
            assert envelope["ok"], envelope
            data: dict[str, Any] = envelope["data"]
            return data

        yield ask
        model.release()


def test_documents_are_kept_listed_found_by_words_and_deleted(
    model: Faulty, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    saved = ask("document:save", projectId="novel", documentId="ch1", text=NOVEL)
    assert len(saved["changed"]) == 6
    assert [one["projectId"] for one in ask("project:list")["projects"]] == ["novel"]
    assert [one["documentId"] for one in ask("document:list", projectId="novel")["documents"]] == ["ch1"]
    assert ask("document:text", projectId="novel", documentId="ch1")["text"] == NOVEL
    status = ask("embedding:status", projectId="novel")
    assert status["pending"] == 6
    assert (status["problem"] is None) == (model.fault in ("bad key", "down", "slow", "wrong width", "not a number"))
    assert warnings(caplog.records) == []
    for number, channel in enumerate(("embedding:search", "rag:retrieve"), start=1):
        found = ask(channel, projectId="novel", query="沈舟怕水吗")
        assert [one["text"] for one in found.get("results") or found["chunks"]][:1] == [AFRAID]
        assert found["mode"] == "fts-fallback"
        assert model.is_reason(found["fallback"]["reason"])
        assert found["fallback"]["notice"]
        assert found["fallback"]["noticeEn"]
        assert len(warnings(caplog.records)) == number
    [worded] = ask("search:fts:query", projectId="novel", query="沈舟")["results"]
    assert (worded["text"], worded["pending"]) == (AFRAID, True)
    ask("document:delete", projectId="novel", documentId="ch1")
    assert ask("document:list", projectId="novel") == {"documents": []}
    assert ask("embedding:status", projectId="novel")["pending"] == 0
