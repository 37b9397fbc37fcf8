"""Whole sentences over two example homes: which devices, which command, which value, or which hint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.devices.homes import example

ROWS = [
    json.loads(line) for line in Path(__file__).with_name("sentences.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['text']}@{row.get('room', '')}")
def test_a_sentence_means_these_devices_and_this_command(row: dict[str, Any]) -> None:
    answer = example(row["home"]).ask(row["text"], room=row.get("room"))
    assert {device.id for device in answer.devices} == set(row["devices"])
    acting = [c for step in answer.steps if step.decision in ("act", "confirm") for c in step.candidates]
    if "command" in row:
        assert {candidate.command.id for candidate in acting if candidate.command} == {row["command"]}
    if "value" in row:
        assert {candidate.value for candidate in acting} == {row["value"]}
    if "change" in row:
        assert {candidate.change for candidate in acting} == {row["change"]}
    if "hint" in row:
        assert row["hint"] in answer.hints
        assert answer.decision != "act"
        assert answer.question
