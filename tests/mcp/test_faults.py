"""No fault of a model costs an agent a memory, an answer by words, or a tool that fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from homing.mcp import mcp_server
from tests.faults import OF_EACH_KIND, faulty, warnings
from tests.mcp.furnished import HOME, STORY, call, data_of, text_of


@pytest.mark.parametrize("fault", OF_EACH_KIND)
def test_what_is_kept_is_found_by_words(tmp_path: Path, fault: str, caplog: pytest.LogCaptureFixture) -> None:
    with faulty(tmp_path, fault) as model, model.open(tmp_path / "data") as app:
        server = mcp_server(app)

        def assert_by_words(tool: str, **arguments: Any) -> dict[str, Any]:
            before = len(warnings(caplog.records))
            result = call(server, tool, **arguments)
            found = data_of(result)
            assert (found["mode"], found["degraded"]) == ("keyword", True)
            assert model.is_reason(found["reason"])
            assert all(said in text_of(result) for said in found["notice"].values())
            assert len(warnings(caplog.records)) == before + 1
            return found

        app.documents.save("小说", "第一章", STORY)
        app.devices.replace(HOME)
        kept = data_of(call(server, "remember", text="灯塔的钥匙在抽屉里"))
        assert not kept["embedded"]
        assert [one["id"] for one in assert_by_words("recall", query="钥匙")["hits"]] == [kept["id"]]
        for project in ("小说", None):
            found = assert_by_words("search_documents", query="灯塔", project=project)
            assert [one["text"] for one in found["hits"]] == [STORY.split("\n\n")[0]]
        acted = data_of(call(server, "find_devices", text="打开卧室的灯"))
        assert (acted["decision"], acted["degraded"]) == ("act", True)
        assert data_of(call(server, "find_skills", query="提交"))["hits"] == []
        model.release()
