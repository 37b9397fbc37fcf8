"""Commands: matched by likeness, never the wrong way round, and given values they take."""

from __future__ import annotations

from typing import Any

import pytest

from homing.devices import (
    CommandSpec,
    Device,
    DeviceRetriever,
    QueryIR,
    SpokenValue,
    filter_by_capability,
    parse,
    recall,
)
from tests.devices.homes import OFF, ON, READ, light

PAIRS = [
    ("打开设备", "关闭设备"),
    ("Turns the device on", "Turns the device off"),
    ("开启", "关掉"),
    ("power on", "power off"),
    ("拉开窗帘", "拉上窗帘"),
    ("Opens the cover", "Closes the cover"),
    ("上锁", "解锁"),
    ("Locks the door", "Unlocks the door"),
    ("调高音量", "调低音量"),
    ("Increase the volume", "Decrease the volume"),
    ("播放", "暂停"),
    ("静音", "取消静音"),
    ("升高温度", "降低温度"),
    ("Raise the shade", "Lower the shade"),
]


def device(*descriptions: str, **fields: Any) -> Device:
    commands = [CommandSpec(id=f"c{i}", description=text) for i, text in enumerate(descriptions)]
    return Device.model_validate({"id": "d", "name": "东西", "commands": commands, **fields})


@pytest.mark.parametrize(("one", "other"), [*PAIRS, *((b, a) for a, b in PAIRS)])
def test_a_command_of_the_opposite_direction_never_matches(one: str, other: str) -> None:
    """Even for a similarity that finds everything alike."""
    action = parse(one).action
    assert action
    assert filter_by_capability([device(other)], QueryIR(action=action), similarity_func=lambda a, b: 1.0) == []
    kept = filter_by_capability([device(other, one)], QueryIR(action=action), similarity_func=lambda a, b: 1.0)
    assert [candidate.command.id for candidate in kept if candidate.command] == ["c1"]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_the_right_one_of_two_opposites_is_chosen_by_the_model(one: str, other: str) -> None:
    for said, expected in ((one, "c0"), (other, "c1")):
        kept = filter_by_capability([device(one, other)], QueryIR(raw=said, action=parse(said).action))
        assert [candidate.command.id for candidate in kept if candidate.command] == [expected], said


def test_the_likeness_decides_and_is_compared_with_the_threshold() -> None:
    ir = QueryIR(action="打开")
    assert filter_by_capability([light("l", "灯")], ir, similarity_func=lambda a, b: 0.49) == []
    assert len(filter_by_capability([light("l", "灯")], ir, similarity_func=lambda a, b: 0.5)) == 1
    assert len(filter_by_capability([light("l", "灯")], ir, similarity_func=lambda a, b: 0.4, threshold=0.3)) == 1


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("让老伙计摇头", "oscillate"),
        ("老伙计停止摇头", "still"),
        ("老伙计重置滤芯", "filter"),
        ("tell 老伙计 to empty the bin", "bin"),
    ],
)
def test_a_verb_no_lexicon_knows_is_found_among_the_commands_of_the_device(said: str, command: str) -> None:
    answer = _buddy().ask(said)
    assert [candidate.command.id for candidate in answer.candidates if candidate.command] == [command]


@pytest.mark.parametrize("said", ["老伙计坏了", "我喜欢老伙计", "老伙计好吵", "老伙计 is cute", "让老伙计别摇头"])
def test_talking_about_a_device_commands_nothing(said: str) -> None:
    assert _buddy().ask(said).devices == ()


def _buddy() -> DeviceRetriever:
    texts = {
        "on": "打开设备",
        "off": "关闭设备",
        "oscillate": "开始摇头",
        "still": "停止摇头",
        "filter": "重置滤芯寿命",
    }
    commands = [CommandSpec(id=name, description=text) for name, text in texts.items()]
    commands.append(CommandSpec(id="bin", description="Empty the dust bin"))
    return DeviceRetriever([Device(id="f", name="老伙计", type="fan", commands=tuple(commands))])


def test_a_toggle_does_not_stand_for_on() -> None:
    toggled = device("切换开关状态")
    assert filter_by_capability([toggled], QueryIR(action="打开"), similarity_func=lambda a, b: 1.0) == []


def test_a_switch_with_two_values_is_given_the_one_that_was_said() -> None:
    switch = Device(
        id="s",
        name="插座",
        commands=(CommandSpec(id="power", description="电源", value_list={"on": "打开", "off": "关闭"}),),
    )
    for action, value in (("打开", "on"), ("关闭", "off"), ("turn off", "off")):
        kept = filter_by_capability([switch], QueryIR(action=action))
        assert [candidate.value for candidate in kept] == [value]


@pytest.mark.parametrize(
    ("value", "bounds", "unit", "expected"),
    [
        (SpokenValue(number=50, unit="%"), (0, 100), "%", 50),
        (SpokenValue(number=50, unit="%"), (0, 255), None, 127.5),
        (SpokenValue(number=50, unit="%"), (16, 30), None, 23),
        (SpokenValue(extreme="max"), (16, 30), "°C", 30),
        (SpokenValue(extreme="min"), (0, 100), "%", 1),
        (SpokenValue(number=77, unit="°F"), (16, 30), "°C", 25),
        (SpokenValue(number=25, unit="°C"), (60, 86), ["°F"], 77),
        (SpokenValue(number=22), (16, 30), ["°C", "°F"], 22),
    ],
)
def test_a_value_is_put_into_the_terms_of_the_command(
    value: SpokenValue, bounds: Any, unit: Any, expected: float
) -> None:
    command = CommandSpec.model_validate({"id": "set", "description": "设置", "value_range": bounds, "unit": unit})
    thing = Device(id="d", name="东西", commands=(command,))
    kept = filter_by_capability([thing], QueryIR(action="设置", value=value))
    assert [candidate.value for candidate in kept] == [expected]


def test_units_and_ranges_are_read_in_every_form() -> None:
    forms: list[dict[str, Any]] = [
        {"value_range": [16, 30], "unit": "°C"},
        {"value_range": {"min": 16, "max": 30}, "unit": ["°C"]},
        {"value_range": {"minimum": 16, "maximum": 30, "unit": "°C"}},
    ]
    specs = [CommandSpec.model_validate({"id": "t", **form}) for form in forms]
    assert len({(spec.value_range, spec.unit) for spec in specs}) == 1
    listed = CommandSpec.model_validate({"id": "m", "value_list": ["cool", {"value": "heat", "description": "制热"}]})
    assert [option.value for option in listed.value_list] == ["cool", "heat"]


def test_without_an_action_nothing_is_filtered() -> None:
    thermometer = Device(id="t", name="温度计", commands=(READ,))
    assert len(filter_by_capability([thermometer, light("l", "灯")], QueryIR())) == 2


def test_candidates_keep_their_reasons() -> None:
    ir = QueryIR(raw="打开灯", action="打开", type_hint="light")
    found = filter_by_capability(recall([light("l", "灯")], ir), ir)
    assert found[0].reasons == ("type_hit", "command_hit")
    assert found[0].command in (ON, OFF)
    assert found[0].command == ON
