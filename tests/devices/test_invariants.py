"""What holds for every home and sentence: never outside the scope, never the other way, never against a "don't"."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homing.devices import Device, DeviceRetriever, parse
from homing.devices.lexicon.actions import opposed
from homing.devices.profiles import usual_commands
from homing.devices.similarity import command_meaning, meaning_of
from tests.effort import times

ROOMS = ["客厅", "主卧", "Kitchen", "Ben's Room", "月亮湾"]
TYPES = {
    "light": ["灯", "燈", "light"],
    "climate": ["空调", "冷气", "air conditioner"],
    "cover": ["窗帘"],
    "fan": ["风扇", "fan"],
}
ON = ["打开", "开启", "開", "turn on ", "switch on "]
OFF = ["关掉", "关闭", "關上", "turn off ", "switch off "]
SENTENCES = [
    "{verb}{room}的{kind}",
    "{verb}所有{room}的{kind}",
    "{verb}除{room}以外的{kind}",
    "除了{room}，其他{kind}都{verb}",
]
ENGLISH = ["{verb}the {kind} in {room}", "{verb}all {kind} except in {room}", "{verb}every {kind} but not {room}"]


@st.composite
def homes(draw: st.DrawFn) -> DeviceRetriever:
    places = draw(st.lists(st.sampled_from(ROOMS), min_size=2, max_size=5, unique=True))
    devices = []
    for number in range(draw(st.integers(6, 20))):
        kind = draw(st.sampled_from(list(TYPES)))
        room = draw(st.sampled_from(places))
        name = draw(st.sampled_from([f"{room}{TYPES[kind][0]}{number}", f"阿福{number}", f"Lucky {number}"]))
        devices.append(Device(id=f"d{number}", name=name, type=kind, room=room, commands=usual_commands(kind)))
    return DeviceRetriever(devices, similarity_func=lambda a, b: 1.0)


@st.composite
def commands(draw: st.DrawFn) -> tuple[str, str, str, bool]:
    room = draw(st.sampled_from([*ROOMS, "地下室"]))
    kind = draw(st.sampled_from(list(TYPES)))
    words = TYPES[kind]
    verb = draw(st.sampled_from(ON + OFF))
    english = verb.isascii() and any(word.isascii() for word in words)
    template = draw(st.sampled_from(ENGLISH if english else SENTENCES))
    said = draw(st.sampled_from([word for word in words if word.isascii() == english] or words))
    return (
        template.format(verb=verb, room=room, kind=said),
        room,
        kind,
        any(part in template for part in ("除", "except", "not")),
    )


@pytest.mark.slow
@settings(max_examples=times(75, in_full=3000), deadline=None)
@given(homes(), commands())
def test_no_device_outside_the_scope_or_of_another_kind_is_ever_touched(
    home: DeviceRetriever, command: tuple[str, str, str, bool]
) -> None:
    text, room, kind, excluded = command
    for device in home.ask(text).devices:
        assert device.type == kind, text
        assert (device.room != room) if excluded else (device.room == room), text


@settings(max_examples=times(75, in_full=3000), deadline=None)
@given(homes(), commands())
def test_no_command_ever_goes_the_other_way(home: DeviceRetriever, command: tuple[str, str, str, bool]) -> None:
    """With a similarity that finds everything alike, so that only the veto stands between on and off."""
    answer = home.ask(command[0])
    for step in answer.steps:
        for candidate in step.candidates:
            if candidate.command is not None:
                assert not opposed(meaning_of(step.ir.action).concepts, command_meaning(candidate.command).concepts)


@settings(max_examples=times(50, in_full=2000), deadline=None)
@given(homes(), commands(), st.sampled_from(["别", "不要", "先别", "千万别", "請不要"]))
def test_a_prohibition_is_never_carried_out(
    home: DeviceRetriever, command: tuple[str, str, str, bool], no: str
) -> None:
    text = ("do not " if command[0].isascii() else no) + command[0]
    if parse(text).negated:
        assert home.ask(text).devices == ()
    else:
        assert command[3], text


@settings(max_examples=times(75, in_full=3000), deadline=None)
@given(homes(), st.text(max_size=60))
def test_noise_moves_nothing_that_it_does_not_name(home: DeviceRetriever, text: str) -> None:
    answer = home.ask(text)
    assert answer.steps
    if answer.devices:
        assert answer.ir.action


@settings(max_examples=times(25, in_full=1000), deadline=None)
@given(homes(), commands())
def test_the_same_sentence_gives_the_same_answer(home: DeviceRetriever, command: tuple[str, str, str, bool]) -> None:
    assert home.ask(command[0]) == home.ask(command[0])
