"""Homes as Home Assistant writes them: its registries, or rows of entities with an area."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from homing.devices.device import Device, Room
from homing.devices.profiles import usual_commands


def read_entities(
    entities: Mapping[str, Any],
    *,
    area: Mapping[str, Any] | None = None,
    device: Mapping[str, Any] | None = None,
    floor: Mapping[str, Any] | None = None,
) -> tuple[list[Device], list[Room]]:
    """Devices and rooms of the registries (`core.entity_registry` and its neighbours).

    Entities that are disabled or hidden are left out; an entity without an area has that of its device.
    """
    floors = {row.get("floor_id"): row.get("name") for row in _rows(floor, "floors")}
    rooms = {
        row.get("id") or row.get("area_id"): Room(
            name=row["name"], floor=floors.get(row.get("floor_id")), aliases=row.get("aliases")
        )
        for row in _rows(area, "areas")
    }
    devices = {row.get("id"): row for row in _rows(device, "devices")}
    found = []
    for row in _rows(entities, "entities"):
        if row.get("disabled_by") or row.get("hidden_by"):
            continue
        parent = devices.get(row.get("device_id"), {})
        room = rooms.get(row.get("area_id") or parent.get("area_id"))
        name = row.get("name") or row.get("original_name") or parent.get("name_by_user") or parent.get("name")
        found.append(_device({**row, "id": row["entity_id"], "name": name}, room))
    return found, list(rooms.values())


def read_entity_rows(rows: Iterable[Mapping[str, Any]], areas: Any = None) -> tuple[list[Device], list[Room]]:
    """Devices from plain rows with `id` or `entity_id`, `name`, `area_id` or `area`, `state` and `attributes`."""
    listed = [row for row in areas or [] if isinstance(row, Mapping)]
    floors = {row.get("id"): row.get("name") for row in listed if row.get("type") == "floor"}
    rooms = {
        row.get("id"): Room(name=row["name"], floor=floors.get(row.get("floor")), aliases=row.get("aliases"))
        for row in listed
        if row.get("type") != "floor"
    }
    found = []
    for row in rows:
        room = rooms.get(row.get("area_id")) or (Room(name=row["area"]) if row.get("area") else None)
        found.append(_device({**row, "id": row.get("entity_id") or row.get("id")}, room))
    return found, list(rooms.values())


def _device(row: Mapping[str, Any], room: Room | None) -> Device:
    entity_id = str(row["id"])
    domain = str(row.get("domain") or entity_id.split(".")[0])
    attributes: Mapping[str, Any] = row.get("attributes") or row.get("capabilities") or {}
    state = row.get("state")
    return Device(
        id=entity_id,
        name=row.get("name") or attributes.get("friendly_name") or entity_id.split(".")[-1].replace("_", " "),
        type=domain,
        room=room.name if room else None,
        floor=room.floor if room else None,
        aliases=[alias for alias in row.get("aliases") or [] if alias],
        device_class=attributes.get("device_class") or row.get("device_class") or row.get("original_device_class"),
        commands=usual_commands(domain, low=attributes.get("min_temp"), high=attributes.get("max_temp")),
        members=attributes.get("entity_id") if isinstance(attributes.get("entity_id"), list) else (),
        state=None if state is None else str(state),
    )


def _rows(registry: Mapping[str, Any] | None, name: str) -> list[Mapping[str, Any]]:
    if registry is None:
        return []
    data = registry.get("data", registry)
    rows = data.get(name, []) if isinstance(data, Mapping) else data
    return [row for row in rows if isinstance(row, Mapping)]
