"""The development set: 546 sentences to three homes, in five kinds of speech, with what each of them means."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.devices import CommandSpec, Device, DeviceRetriever
from homing.devices.evaluation import evaluate
from tests.devices.homes import OFF, ON

HOMES = sorted(Path(__file__).with_name("development").iterdir())


@pytest.mark.parametrize("folder", HOMES, ids=lambda folder: folder.name)
def test_sentences_mean_what_people_mean(folder: Path) -> None:
    found = evaluate(folder)
    assert found.wrong_acts == 0, found.misses
    assert found.exact >= 0.95, found.misses
    assert all(share >= 0.95 for share in found.kinds.values()), found.kinds


def test_a_verb_nobody_knows_is_matched_by_likeness_and_confirmed() -> None:
    feeder = Device(
        id="f", name="喂食器", type="pet_feeder", commands=(CommandSpec(id="feed", description="投喂宠物"),)
    )
    lamp = Device(id="l", name="台灯", type="light", commands=(ON, OFF))
    answer = DeviceRetriever([feeder, lamp]).ask("喂猫")
    assert [(c.device.id, c.command.id) for c in answer.candidates if c.command] == [("f", "feed")]
    assert answer.decision in ("act", "confirm")


def test_an_unknown_device_is_told_with_the_place_it_was_looked_for() -> None:
    home = DeviceRetriever([Device(id="l", name="台灯", type="light", room="书房", commands=(ON, OFF))])
    assert home.ask("打开书房的加湿器").question.startswith("“书房”里没有找到“加湿器”")
