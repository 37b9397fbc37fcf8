"""The measurement counts what it says it counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from homing.devices.evaluation import evaluate
from homing.errors import NotFound

DEVICES = [
    {"id": "light.a", "name": "吊灯", "domain": "light", "area_id": "k", "state": "off", "attributes": None},
    {"id": "light.b", "name": "台灯", "domain": "light", "area_id": "s", "state": "off", "attributes": None},
]
AREAS = [{"id": "k", "name": "客厅", "floor": None}, {"id": "s", "name": "书房", "floor": None}]


def row(text: str, intent: str, *expected: str) -> dict[str, object]:
    return {"utterance": text, "intent": intent, "context_area": None, "expected_entities": list(expected)}


def test_exact_wrong_refused_and_direction(tmp_path: Path) -> None:
    sentences = [
        row("打开吊灯", "HassTurnOn", "light.a"),
        row("关掉吊灯", "HassTurnOn", "light.a"),
        row("打开台灯", "HassTurnOn", "light.a"),
        row("打开风铃", "HassTurnOn", "light.a"),
        row("打开厨房的灯", "HassTurnOn"),
        row("关闭书房的灯", "HassTurnOff"),
        row("哪些灯开着", "HassGetState"),
    ]
    foreign = [
        {"utterance": "十分钟计时器", "intent": "HassStartTimer"},
        {"utterance": "几点了", "intent": "HassGetCurrentTime"},
    ]
    for name, rows in (("devices", DEVICES), ("areas", AREAS), ("eval", sentences), ("tests", foreign)):
        text = "\n".join(json.dumps(entry, ensure_ascii=False) for entry in rows)
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    found = evaluate(tmp_path)
    assert (found.sentences, found.exact, found.wrong, found.refused) == (4, 0.5, 0.25, 0.25)
    assert found.direction == pytest.approx(2 / 3)
    assert (found.commands_without_entities, found.acted_without_entities) == (2, 1)
    assert (found.foreign, found.acted_on_foreign) == (2, 0)
    assert {miss.sentence for miss in found.misses} == {"打开台灯", "打开风铃", "关闭书房的灯"}


def test_a_folder_without_sentences_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"eval\.jsonl"):
        evaluate(tmp_path)
