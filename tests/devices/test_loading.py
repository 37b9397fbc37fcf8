"""Homes from files: our own, Home Assistant's, SmartThings', and broken ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from homing.database import Database
from homing.devices import DeviceRetriever, load_commands, load_home, load_profiles
from homing.devices.saved import SavedDevices
from homing.errors import HomingError, InvalidArgument, NotFound, StoreCorrupt
from tests.devices.homes import EXAMPLES, words_only

DEVICE = {"id": "l", "name": "吊灯", "type": "light", "room": "客厅"}
PROFILE = {"id": "lamp", "commands": [{"id": "on", "description": "打开"}, {"id": "off", "description": "关闭"}]}


def write(path: Path, data: Any, *, lines: bool = False) -> Path:
    text = (
        "\n".join(json.dumps(row, ensure_ascii=False) for row in data)
        if lines
        else json.dumps(data, ensure_ascii=False)
    )
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("lines", [False, True])
def test_a_list_of_devices_is_read_as_json_and_jsonl(lines: bool, tmp_path: Path) -> None:
    home = load_home(write(tmp_path / "home.json", [DEVICE, {**DEVICE, "id": "m"}], lines=lines))
    assert [device.id for device in home.devices] == ["l", "m"]
    assert "turn_on" in {command.id for command in home.devices[0].commands}


@pytest.mark.parametrize("lines", [False, True])
def test_profiles_are_an_array_or_real_jsonl(lines: bool, tmp_path: Path) -> None:
    write(tmp_path / "devices.json", [{**DEVICE, "profile": "lamp"}])
    spec = write(tmp_path / "spec.jsonl", [PROFILE, {"id": "x", "description": "自由的命令"}], lines=lines)
    assert [command.id for command in load_home(tmp_path).devices[0].commands] == ["on", "off"]
    assert [command.id for command in load_commands(spec)] == ["on", "off", "x"]
    assert set(load_profiles(spec)) == {"lamp", ""}


def test_rooms_floors_groups_and_aliases(tmp_path: Path) -> None:
    data = {
        "rooms": ["客厅", {"name": "主卧", "floor": "二楼", "aliases": ["爸妈房"]}],
        "devices": [DEVICE, {**DEVICE, "id": "m", "name": "床头灯", "room": "主卧", "aliases": "小月亮"}],
        "groups": [{"id": "g", "name": "全家灯", "members": ["l", "m"]}],
    }
    home = load_home(write(tmp_path / "home.json", data))
    retriever = DeviceRetriever(home.devices, home.rooms, similarity_func=words_only)
    for text, expected in [
        ("打开爸妈房的灯", ["m"]),
        ("打开二楼的灯", ["m"]),
        ("打开小月亮", ["m"]),
        ("打开全家灯", ["l", "m"]),
    ]:
        assert [device.id for device in retriever.ask(text).devices] == expected, text


def test_a_home_assistant_export(tmp_path: Path) -> None:
    write(tmp_path / "core.floor_registry", {"data": {"floors": [{"floor_id": "f2", "name": "二楼"}]}})
    write(
        tmp_path / "core.area_registry",
        {
            "data": {
                "areas": [
                    {"id": "a1", "name": "客厅", "aliases": ["大厅"], "floor_id": None},
                    {"id": "a2", "name": "主卧", "floor_id": "f2"},
                ]
            }
        },
    )
    write(tmp_path / "core.device_registry", {"data": {"devices": [{"id": "d1", "name": "Hue", "area_id": "a2"}]}})
    write(tmp_path / "core.entity_registry", {"data": {"entities": [
        {"entity_id": "light.one", "name": "大灯", "area_id": "a1", "aliases": ["太阳"]},
        {"entity_id": "light.two", "name": None, "original_name": "床头灯", "device_id": "d1"},
        {"entity_id": "cover.c", "original_name": "窗帘", "area_id": "a2", "original_device_class": "curtain"},
        {"entity_id": "light.off", "name": "坏灯", "disabled_by": "user"},
        {"entity_id": "climate.ac", "original_name": "空调", "area_id": "a1",
         "capabilities": {"min_temp": 16, "max_temp": 30}},
    ]}})  # fmt: skip
    home = load_home(tmp_path)
    retriever = DeviceRetriever(home.devices, home.rooms, similarity_func=words_only)
    assert {device.id for device in home.devices} == {"light.one", "light.two", "cover.c", "climate.ac"}
    for text, expected in [
        ("打开大厅的灯", ["light.one"]), ("打开太阳", ["light.one"]), ("打开二楼的灯", ["light.two"]),
        ("拉上主卧窗帘", ["cover.c"]),
    ]:  # fmt: skip
        assert [device.id for device in retriever.ask(text).devices] == expected, text
    assert retriever.ask("空调调到40度").hints == ("value_out_of_range",)


def test_a_smartthings_device_list(tmp_path: Path) -> None:
    items = [
        {"deviceId": "1", "name": "zigbee-bulb", "label": "小太阳", "roomId": "r1", "components": [
            {"id": "main", "capabilities": [{"id": "switch", "version": 1}, {"id": "switchLevel"}],
             "categories": [{"name": "Light"}]}]},
        {"deviceId": "2", "label": "空调", "roomId": "r1", "components": [
            {"id": "main", "capabilities": [{"id": "switch"}, {"id": "thermostatCoolingSetpoint"}, {"id": "unheardOf"}],
             "categories": [{"name": "AirConditioner"}]}]},
    ]  # fmt: skip
    home = load_home(
        write(tmp_path / "st.json", {"items": items, "rooms": {"items": [{"roomId": "r1", "name": "客厅"}]}})
    )
    retriever = DeviceRetriever(home.devices, home.rooms, similarity_func=words_only)
    found = retriever.ask("把客厅的灯调到40%").candidates
    assert [(c.device.id, c.command.id if c.command else "", c.value) for c in found] == [
        ("1", "switchLevel.setLevel", 40)
    ]
    found = retriever.ask("冷气设成26度").candidates
    assert [(c.device.id, c.value) for c in found] == [("2", 26)]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[1, 2]", "{}", '{"devices": []}', '[{"name": "没有 id"}]', '[{"id": "x", "name": ""}]',
     '{"id": 1}\n{oops',
     '[{"id": "x", "name": "灯", "profile": "missing"}]',
     '[{"id": "x", "name": "灯", "commands": [{"description": "无 id"}]}]'],
)  # fmt: skip
def test_a_broken_file_says_what_is_wrong(content: str, tmp_path: Path) -> None:
    path = tmp_path / "home.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidArgument, match=r"home\.json"):
        load_home(path)


def test_a_missing_file_or_an_empty_folder_is_not_found(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(NotFound):
            load_home(path)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "home.json"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(InvalidArgument):
        load_home(path)


def test_a_loaded_home_is_remembered_and_only_changes_are_reported(
    tmp_path: Path, open_database: Callable[[], Database]
) -> None:
    source = write(tmp_path / "home.json", [DEVICE, {**DEVICE, "id": "m", "name": "台灯"}])
    first = SavedDevices(open_database())
    assert first.load(source).added == ("l", "m")
    write(source, [DEVICE, {**DEVICE, "id": "m", "name": "大台灯"}])
    again = SavedDevices(open_database())
    changes = again.load(source)
    assert (changes.changed, changes.unchanged) == (("m",), ("l",))
    assert [device.name for device in SavedDevices(open_database()).ask("打开大台灯").devices] == ["大台灯"]


def test_rooms_without_devices_are_remembered_too(open_database: Callable[[], Database]) -> None:
    SavedDevices(open_database()).load(EXAMPLES / "loft.json")
    assert SavedDevices(open_database()).ask("打开阳台的灯").hints == ("unknown_device",)


def test_a_failed_load_leaves_the_old_home(tmp_path: Path, open_database: Callable[[], Database]) -> None:
    saved = SavedDevices(open_database())
    saved.load(EXAMPLES / "loft.json")
    bad = tmp_path / "bad.json"
    bad.write_text("[", encoding="utf-8")
    with pytest.raises(HomingError):
        saved.load(bad)
    assert len(SavedDevices(open_database()).home.devices) == len(saved.home.devices) > 0
    assert not list(tmp_path.glob("*.tmp"))


def test_a_damaged_home_says_what_to_do_and_doing_it_helps(
    database: Database, open_database: Callable[[], Database]
) -> None:
    SavedDevices(database).load(EXAMPLES / "loft.json")
    database.write(lambda tx: tx.rows("UPDATE homes SET body = $1", '{"devices": ['))
    saved = SavedDevices(open_database())
    with pytest.raises(StoreCorrupt, match="load the home again"):
        saved.ask("打开阳台的灯")
    assert saved.load(EXAMPLES / "loft.json").added
    assert saved.ask("打开阳台的灯").hints == ("unknown_device",)
