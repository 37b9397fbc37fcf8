"""Asking a home: dialogue, context, names, groups, changes, and what happens when the model is gone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from homing.devices import Answer, Device, DeviceRetriever, DialogueState, Home, Room
from homing.errors import ProviderUnavailable
from homing.testing.fake import FakeEmbedder
from tests.devices.homes import OFF, ON, example, light, words_only


def ids(answer: Answer) -> list[str]:
    return [device.id for device in answer.devices]


def test_it_means_what_was_last_spoken_of_and_only_where_the_caller_passes_it_on() -> None:
    home = example("loft")
    first = home.ask("打开书房的台灯")
    assert ids(home.ask("把它调到百分之三十", state=first.state)) == ["light.study_desk"]
    assert ids(home.ask("再亮一点", state=first.state)) == ["light.study_desk"]
    assert home.ask("把它关掉").hints == ("no_reference",)


def test_a_question_is_answered_in_the_next_sentence() -> None:
    home = example("loft")
    asked = home.ask("打开床头灯")
    assert asked.decision == "ask"
    assert set(asked.steps[0].suggestions) == {"左床头灯", "右床头灯"}
    assert ids(home.ask("左床头灯", state=asked.state)) == ["light.master_left"]
    where = home.ask("关灯")
    assert ids(home.ask("厨房的", state=where.state)) == ["light.kitchen"]


def test_a_bare_room_inherits_the_kind_of_device_that_was_spoken_of() -> None:
    home = example("loft")
    first = home.ask("打开厨房的灯")
    assert ids(home.ask("餐厅的也打开", state=first.state)) == ["light.dining"]


def test_the_state_is_plain_data_that_never_changes() -> None:
    state = DialogueState(last=("light.kitchen",))
    example("loft").ask("打开书房的台灯", state=state)
    assert state == DialogueState(last=("light.kitchen",))


def test_reasons_say_why_a_device_is_there() -> None:
    home = example("loft")
    assert home.ask("打开老伙计").candidates[0].reasons == ("name_hit", "command_hit")
    assert home.ask("打开餐厅的灯").candidates[0].reasons == ("room_hit", "type_hit", "command_hit")


@pytest.mark.parametrize(("said", "name"), [("晓白", "小白"), ("老火计", "老伙计"), ("達白", "大白")])
def test_a_name_is_found_by_its_sound(said: str, name: str) -> None:
    answer = example("loft").ask(f"打开{said}")
    assert [device.name for device in answer.devices] == [name]


def test_devices_of_one_name_are_told_apart_by_their_room_or_asked_about() -> None:
    home = DeviceRetriever([light("a", "台灯", "卧室"), light("b", "台灯", "书房")], similarity_func=words_only)
    assert ids(home.ask("打开书房的台灯")) == ["b"]
    asked = home.ask("打开台灯")
    assert asked.hints == ("multiple_close_matches",)
    assert asked.steps[0].suggestions == ("台灯 (卧室)", "台灯 (书房)")
    assert ids(home.ask("打开台灯", room="卧室")) == ["a"]
    assert ids(home.ask("打开所有台灯")) == ["a", "b"]


def test_the_room_of_the_speaker_never_hides_the_only_one() -> None:
    home = DeviceRetriever([light("a", "吊灯", "客厅")], [Room(name="卧室")], similarity_func=words_only)
    assert ids(home.ask("打开灯", room="卧室")) == ["a"]
    assert ids(home.ask("打开卧室的灯")) == []


def test_locks_are_never_opened_in_a_bunch_unless_the_sentence_says_all() -> None:
    answer = example("cottage").ask("unlock the door")
    assert answer.hints == ("multiple_close_matches",)
    assert ids(example("cottage").ask("unlock all doors")) == ["lock.front", "lock.back"]


def test_a_group_stands_for_its_members() -> None:
    answer = example("loft").ask("关闭一楼灯组")
    assert ids(answer) == ["light.living_main", "light.dining", "light.kitchen"]
    assert answer.steps[0].groups == {"turn_off": ("light.living_main", "light.dining", "light.kitchen")}


def test_a_value_out_of_range_is_refused_with_the_range() -> None:
    answer = example("loft").ask("把客厅空调调到40度")
    assert answer.hints == ("value_out_of_range",)
    assert "16–30 °C" in answer.question


def test_only_what_changed_is_indexed_and_embedded_again() -> None:
    embedder = FakeEmbedder()
    home = DeviceRetriever([light("a", "吊灯", "客厅"), light("b", "台灯", "书房")], embedder=embedder)
    assert home.prepare() > 0
    before = len(embedder.texts)
    changes = home.update([light("a", "大吊灯", "客厅"), light("b", "台灯", "卧室"), light("c", "夜灯", "卧室")])
    assert (changes.added, changes.changed, changes.removed, changes.unchanged) == (("c",), ("a", "b"), (), ())
    assert home.prepare() == 0
    assert len(embedder.texts) == before
    changes = home.update([light("a", "大吊灯", "客厅"), light("b", "台灯", "卧室")])
    assert (changes.removed, changes.unchanged) == (("c",), ("a", "b"))


def test_renamed_moved_and_removed_devices_answer_to_what_they_are_now() -> None:
    home = Home([light("a", "吊灯", "客厅"), light("b", "小黄", "书房")])
    home.update([light("a", "大红", "客厅")])
    retriever = DeviceRetriever(home.devices, similarity_func=words_only)
    assert ids(retriever.ask("打开大红")) == ["a"]
    assert retriever.ask("打开小黄").hints == ("unknown_device",)
    retriever.update([light("a", "大红", "厨房")])
    assert ids(retriever.ask("打开厨房的灯")) == ["a"]
    assert ids(retriever.ask("打开客厅的灯")) == []


def test_an_index_that_was_updated_equals_one_that_was_built_new() -> None:
    first = [light("a", "吊灯", "客厅"), light("b", "台灯", "书房"), light("c", "夜灯")]
    second = [light("b", "台灯", "客厅"), light("d", "吊灯", "书房", aliases=("小太阳",))]
    updated, fresh = Home(first), Home(second)
    updated.update(second)
    for name in ("吊灯", "台灯", "夜灯", "小太阳", "太阳"):
        assert updated.names.find(name) == fresh.names.find(name), name
    for place in ("客厅", "书房"):
        assert (updated.in_place(place) or set()) == (fresh.in_place(place) or set())
    assert updated.vocabulary.names == fresh.vocabulary.names


def test_a_new_state_is_no_change_of_the_index() -> None:
    home = Home([light("a", "吊灯", "客厅", state="off")])
    changes = home.update([light("a", "吊灯", "客厅", state="on")])
    assert changes.unchanged == ("a",)
    assert home.devices[0].state == "on"


def test_without_the_model_commands_are_matched_by_their_words_and_the_answer_says_so() -> None:
    broken = FakeEmbedder(fail_with=ProviderUnavailable("told to fail"))
    answer = DeviceRetriever([light("a", "吊灯", "客厅")], embedder=broken).ask("关掉吊灯")
    assert answer.degraded
    assert answer.reason == "PROVIDER_UNAVAILABLE"
    assert ids(answer) == ["a"]
    assert answer.candidates[0].command == OFF


def test_one_id_with_two_names_is_one_device() -> None:
    home = DeviceRetriever(
        [Device(id="x", name="温控器", type="climate", commands=(ON,)), Device(id="x", name="空调", type="climate")],
        similarity_func=words_only,
    )
    assert ids(home.ask("打开空调")) == ids(home.ask("打开温控器")) == ["x"]


def test_an_empty_home_asks_and_never_fails() -> None:
    home = DeviceRetriever([], similarity_func=words_only)
    for text in ("打开灯", "", "   ", "打开卧室的灯", "关掉所有的灯", "?!"):
        answer = home.ask(text)
        assert answer.devices == ()
        assert answer.hints


def test_threads_may_ask_at_once() -> None:
    home = example("loft")
    expected = {
        text: ids(home.ask(text)) for text in ("打开老伙计", "关掉主卧的灯", "客厅空调调到26度", "拉上所有窗帘")
    }
    with ThreadPoolExecutor(8) as pool:
        for text, answer in pool.map(lambda text: (text, home.ask(text)), list(expected) * 20):
            assert ids(answer) == expected[text]
