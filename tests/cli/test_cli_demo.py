"""`homing demo`: the tour, for people and for programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import Shell

pytestmark = pytest.mark.slow

BASE_ONLY = (
    "import sys\n"
    "for name in ('lancedb', 'pyarrow', 'fastapi', 'mcp'):\n"
    "    sys.modules[name] = None\n"
    "from homing.cli.main import run; run()"
)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_the_tour_answers_in_both_languages_and_without_the_model(shell: Shell) -> None:
    told = shell.json("demo", "--data", "tour")
    assert {query: found["hits"][0]["metadata"]["name"] for query, found in told["skills"].items()} == {
        "帮我提交代码": "git-commit",
        "will I need an umbrella tomorrow": "weather-report",
        "把这份合同翻译成 English": "translate-document",
    }
    best = {query: answer["hits"][0]["metadata"]["document_id"] for query, answer in told["answers"].items()}
    assert best["孤独的感觉"] == "灯塔"
    assert best["怎么撤销已经推送的提交"] == "git-notes"
    assert best["what to pack for a trip"] == "旅行清单"
    assert (told["edit"]["embedded"], told["edit"]["paragraphs"] > 4) == (1, True)
    assert told["degraded"]["reason"] == "vector:MODEL_NOT_READY"
    assert told["degraded"]["hits"]
    assert told["recalled"]["什么时候开发票"]["hits"][0]["metadata"]["collection"] == "knowledge"
    lights = json.dumps(told["devices"]["打开除卧室以外的灯"], ensure_ascii=False)
    assert "厨房灯" in lights
    assert "床头灯" not in lights
    assert told["page"] == "homing serve --open --data tour"


def test_what_the_tour_shows_stays_in_the_home_folder_and_may_be_taken_again(shell: Shell, tmp_path: Path) -> None:
    for _ in range(2):
        shown = shell("demo", HOME=str(tmp_path))
        assert shown.returncode == 0, shown.stderr
        assert "\x1b" not in shown.stdout
        assert f"homing serve --open --data {tmp_path / '.homing' / 'demo'}" in shown.stdout
        assert "Semantic search is unavailable" in shown.stdout
        assert "1 of 6 paragraphs embedded again" in shown.stdout
    found = shell.json("skills", "find", "提交代码", "--data", str(tmp_path / ".homing" / "demo"))
    assert found["hits"][0]["metadata"]["name"] == "git-commit"


def test_no_extra_is_needed_for_the_tour(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BASE_ONLY, "demo", "--data", "tour"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "git-commit" in done.stdout
    assert "打开除卧室以外的灯" in done.stdout
