"""A home that is replaced while people ask about it."""

from __future__ import annotations

import threading
from pathlib import Path

from homing.devices.saved import SavedDevices

HOMES = [
    {
        "devices": [{"id": f"{room}-lamp", "name": "主灯", "type": "light", "room": room}],
        "rooms": [{"name": room}],
    }
    for room in ("卧室", "客厅")
]


def test_a_sentence_is_answered_by_one_home_the_old_or_the_new(tmp_path: Path) -> None:
    devices = SavedDevices(tmp_path)
    devices.replace(HOMES[0])
    stop = threading.Event()
    seen: set[tuple[str, ...]] = set()
    failures: list[Exception] = []

    def ask() -> None:
        try:
            while not stop.is_set():
                seen.add(tuple(one.id for one in devices.ask("打开卧室的灯").devices))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(40):
        devices.replace(HOMES[number % 2])
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert seen <= {("卧室-lamp",), ()}


def test_what_replaced_it_is_there_after_a_restart_and_the_rest_is_gone(tmp_path: Path) -> None:
    devices = SavedDevices(tmp_path)
    assert devices.replace(HOMES[0]).added == ("卧室-lamp",)
    changes = devices.replace(HOMES[1])
    assert (changes.added, changes.removed) == (("客厅-lamp",), ("卧室-lamp",))
    again = SavedDevices(tmp_path)
    assert [room.name for room in again.home.rooms] == ["客厅"]
    assert again.ask("打开客厅的灯").devices[0].id == "客厅-lamp"
    assert again.replace(HOMES[1]).unchanged == ("客厅-lamp",)
    assert devices.replace({"devices": []}).removed == ("客厅-lamp",)
    assert SavedDevices(tmp_path).home.devices == []
