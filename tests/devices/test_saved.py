"""A home that is replaced while people ask about it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from homing.database import Database
from homing.devices.saved import SavedDevices

HOMES = [
    {
        "devices": [{"id": f"{room}-lamp", "name": "主灯", "type": "light", "room": room}],
        "rooms": [{"name": room}],
    }
    for room in ("卧室", "客厅")
]


def test_a_sentence_is_answered_by_one_home_the_old_or_the_new(database: Database) -> None:
    devices = SavedDevices(database)
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


def test_what_replaced_it_is_there_after_a_restart_and_the_rest_is_gone(
    database: Database, open_database: Callable[[], Database]
) -> None:
    devices = SavedDevices(database)
    assert devices.replace(HOMES[0]).added == ("卧室-lamp",)
    changes = devices.replace(HOMES[1])
    assert (changes.added, changes.removed) == (("客厅-lamp",), ("卧室-lamp",))
    again = SavedDevices(open_database())
    assert [room.name for room in again.home.rooms] == ["客厅"]
    assert again.ask("打开客厅的灯").devices[0].id == "客厅-lamp"
    assert again.replace(HOMES[1]).unchanged == ("客厅-lamp",)
    assert devices.replace({"devices": []}).removed == ("客厅-lamp",)
    assert SavedDevices(open_database()).home.devices == []


def test_a_home_that_another_process_loads_answers_the_next_sentence(open_database: Callable[[], Database]) -> None:
    here, elsewhere = SavedDevices(open_database()), SavedDevices(open_database())
    assert here.ask("打开卧室的灯").devices == ()
    elsewhere.replace(HOMES[0])
    assert [one.id for one in here.ask("打开卧室的灯").devices] == ["卧室-lamp"]
    assert here.replace(HOMES[1]).removed == ("卧室-lamp",)
    assert [one.id for one in elsewhere.home.devices] == ["客厅-lamp"]


def test_changes_are_told_from_the_home_that_was_replaced(open_database: Callable[[], Database]) -> None:
    here, elsewhere = SavedDevices(open_database()), SavedDevices(open_database())
    here.replace(HOMES[0])
    elsewhere.replace(HOMES[1])
    changes = here.replace(HOMES[1])
    assert (changes.added, changes.removed, changes.unchanged) == ((), (), ("客厅-lamp",))


def test_a_home_in_use_stays_as_it_is_when_another_is_loaded(database: Database) -> None:
    devices = SavedDevices(database)
    devices.replace(HOMES[0])
    before = devices.home
    devices.replace(HOMES[1])
    assert [one.id for one in before.devices] == ["卧室-lamp"]
