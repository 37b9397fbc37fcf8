"""No fault of a model costs somebody in a shell a text, an answer by words, or a command that fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import homing
from homing.cli.main import app
from tests.faults import OF_EACH_KIND, faulty
from tests.skills.folders import front, write_skill

pytestmark = pytest.mark.slow

HOME = Path(homing.__file__).parent / "examples" / "home.json"
STORY = "林婉推开窗，看见灯塔亮了。"


def shell(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, (arguments, done.output, done.exception)
    assert "Traceback" not in done.output
    return done.stdout


def ask(*arguments: str) -> Any:
    return json.loads(shell(*arguments, "--json"))


@pytest.mark.parametrize("fault", OF_EACH_KIND)
def test_everything_is_kept_listed_found_by_words_and_deleted(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOMING_DATA", str(tmp_path / "data"))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "story.md").write_text(STORY, encoding="utf-8")
    write_skill(tmp_path / "skills", "git", front("git-commit", "生成Git提交信息"))
    with faulty(tmp_path, fault) as model:

        def assert_by_words(found: dict[str, Any], text: str) -> None:
            assert [hit["text"] for hit in found["hits"]] == [text]
            assert (found["mode"], found["degraded"]) == ("keyword", True)
            assert model.is_reason(found["reason"]), found["reason"]
            assert found["notice"]["zh"]

        # A command that writes ends when its vectors are there: here a slow model is slow for questions only.
        model.release()
        waits = int(fault != "slow")
        ask("documents", "add", "novel", "ch1", "notes/story.md")
        assert [one["pending"] for one in ask("documents", "list")["projects"]] == [waits]
        remembered = ask("memory", "remember", "灯塔的钥匙在抽屉里")
        assert ask("memory", "list")["waiting"] == 2 * waits
        shell("knowledge", "upload", "notes/story.md")
        shell("skills", "scan", "skills")
        shell("devices", "load", str(HOME))
        shell("search", "海", "notes", "--json")
        model.hold()
        assert_by_words(ask("documents", "search", "novel", "灯塔"), STORY)
        assert_by_words(ask("memory", "recall", "灯塔"), "灯塔的钥匙在抽屉里")
        assert_by_words(ask("search", "灯塔", "notes"), STORY)
        assert_by_words(ask("knowledge", "search", "灯塔"), STORY)
        shown = shell("documents", "search", "novel", "灯塔")
        assert "Semantic search is unavailable" in shown
        assert "灯塔" in shown
        for home in ([], ["--home", str(HOME)]):
            answer = ask("devices", "ask", "打开除卧室以外的灯", *home)
            assert (answer["decision"], answer["degraded"]) == ("act", True)
        assert [one["metadata"]["name"] for one in ask("skills", "find", "提交")["hits"]] == ["git-commit"]
        assert [one["id"] for one in ask("documents", "list")["projects"]] == [
            f"folder {tmp_path / 'notes'}",
            "novel",
            "uploads",
        ]
        assert ask("memory", "list")["counts"]["knowledge"] == 1
        assert [one["file_name"] for one in ask("knowledge", "list")["files"]] == ["story.md"]
        assert [one["name"] for one in ask("skills", "list")["skills"]] == ["git-commit"]
        assert ask("models", "list")["models"]
        # A paragraph, one of the folder, a memory, a window of the upload and a skill.
        assert ask("memory", "queue")["backlog"]["waiting"] == 5 * waits
        assert ask("memory", "forget", "knowledge", remembered["id"]) == {"forgotten": 1}
        shell("documents", "remove", "novel", "ch1")
        shell("knowledge", "delete", "story.md")
        shell("documents", "remove", f"folder {tmp_path / 'notes'}", "--yes")
        assert ask("documents", "list")["projects"] == ask("knowledge", "list")["files"] == []
