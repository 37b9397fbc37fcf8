"""`homing devices` as its group of commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from homing.cli.main import app
from homing.errors import NotFound
from tests.devices.homes import EXAMPLES

LOFT = str(EXAMPLES / "loft.json")


def run(*arguments: str, stdin: str = "") -> str:
    done = CliRunner().invoke(app, ["devices", *arguments], input=stdin, catch_exceptions=False, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(tmp_path / "data")


def test_a_home_is_loaded_listed_and_asked(data: str) -> None:
    assert "33 added" in run("load", LOFT, "--data", data)
    assert "33 unchanged" in run("load", LOFT, "--data", data)
    listed = run("list", "--room", "书房", "--data", data)
    assert "阅读台灯" in listed
    assert "厨房灯" not in listed
    shown = run("ask", "打开书房的台灯", "--data", data)
    assert "light.study_desk" in shown
    assert "name_hit" in shown


def test_json_carries_the_reading_the_devices_and_the_reasons(data: str) -> None:
    answer = json.loads(run("ask", "把小鸭子调到百分之二十", "--home", LOFT, "--json"))
    step = answer["steps"][0]
    assert answer["decision"] == "act"
    assert step["ir"]["value"]["number"] == 20
    assert step["candidates"][0]["reasons"] == ["name_hit", "command_hit"]
    assert (step["candidates"][0]["command"], step["candidates"][0]["value"]) == ("set_brightness", 20)


def test_explain_shows_how_the_sentence_was_read() -> None:
    shown = run("ask", "打开除主卧以外的灯", "--home", LOFT, "--explain")
    assert "quantifier=except" in shown
    assert "scope_exclude=['主卧']" in shown


def test_a_question_is_asked_rather_than_a_guess_made() -> None:
    assert "multiple_close_matches" in run("ask", "打开床头灯", "--home", LOFT)


def test_the_repl_keeps_the_dialogue() -> None:
    shown = run("repl", "--home", LOFT, stdin="打开床头灯\n左床头灯\n把它调到30%\n\n")
    assert "multiple_close_matches" in shown
    assert "set_brightness = 30" in shown


def test_without_a_home_the_message_says_how_to_load_one(data: str) -> None:
    with pytest.raises(NotFound, match="homing devices load"):
        run("ask", "开灯", "--data", data)


def test_an_unknown_room_lists_the_known_ones() -> None:
    with pytest.raises(NotFound, match="客厅"):
        run("list", "--room", "地下室", "--home", LOFT)
