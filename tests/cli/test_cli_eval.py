"""`homing eval` in the shell."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from homing.cli.evaluate import bar, line
from homing.evaluation.result import Evaluation
from tests.cli.shell import Shell

ROWS = [
    {"id": "git", "text": "生成Git提交信息"},
    {"id": "file", "text": "Read the contents of a file"},
    {"query": "帮我提交代码", "expected": ["git"]},
    {"query": "讀取文件", "expected": ["file"]},
    {"query": "how do I bake bread", "expected": []},
]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "g.jsonl").write_text("\n".join(json.dumps(row) for row in ROWS), encoding="utf-8")
    return Shell(tmp_path)


@pytest.mark.slow
def test_configurations_are_compared_and_the_result_is_what_its_schema_says(shell: Shell) -> None:
    told = Evaluation.model_validate(
        shell.json("eval", "g.jsonl", "--weights", "0.5:0.5", "--weights", "0.9:0.1", "--k", "10", "--save")
    )
    rows = {row.configuration: row for row in told.rows if row.language == "all"}
    assert set(rows) == {"vector", "keyword", "hybrid 0.5/0.5 k=10", "hybrid 0.9/0.1 k=10"}
    assert (rows["vector"].recall_1, rows["vector"].abstained, rows["vector"].kept) == (1, 1, 1)
    [kept] = (shell.folder / "data" / "evaluations").glob("*.json")
    assert kept.stem == told.id


@pytest.mark.slow
def test_a_sweep_is_drawn_and_floors_decide_the_exit_code(shell: Shell) -> None:
    shown = shell("eval", "g.jsonl", "--sweep", "--floor", "recall_1=0.9", "--floor", "zh:mrr=1.1", COLUMNS="120")
    assert shown.returncode == 1
    assert "from keywords alone (left) to vectors alone (right)" in shown.stdout
    assert "█" in shown.stdout
    assert "✓ g: recall_1 1.000 ≥ 0.9" in shown.stdout
    assert "✗ g: mrr (zh) 1.000 < 1.1" in shown.stdout
    assert "abstaining below 0.5: silent on 100%" in shown.stdout
    # The only English question is one that nothing answers: there is no share of what was found.
    assert re.search(r"^ +en +1 +– +– +– +– +–", shown.stdout, re.MULTILINE)
    assert not re.search(r"^ +en .*best", shown.stdout, re.MULTILINE)
    assert "\x1b" not in shown.stdout
    assert shell("eval", "g.jsonl", "--floor", "recall_1=0.9").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.jsonl"], "there is no golden set"),
        (["g.jsonl", "--floor", "magic=1"], "a floor is FIGURE=NUMBER"),
        (["g.jsonl", "--weights", "1"], "weights are written vector:keyword"),
        (["g.jsonl", "--mode", "magic"], "known: semantic, hybrid, keyword"),
        (["g.jsonl", "--model", "no-such-model"], "no-such-model"),
    ],
)
def test_mistakes_say_what_to_do(shell: Shell, arguments: list[str], message: str) -> None:
    done = shell("eval", *arguments)
    assert done.returncode == 3
    assert message in done.stderr


def test_bars_and_lines_are_as_long_as_what_they_show() -> None:
    assert (bar(0, 8), bar(0.5, 8), bar(1, 8), bar(1 / 64, 8)) == ("", "████", "████████", "▏")
    assert line([0, 0.5, 1]) == "▁▅█"
    assert line([0.7, 0.7]) == "▄▄"
