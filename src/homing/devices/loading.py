"""Reading a home from files: our own JSON, JSONL, a Home Assistant export, a SmartThings device list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from homing.devices.device import CommandSpec, Device, Room
from homing.devices.profiles import SMARTTHINGS, usual_commands
from homing.devices.vocabulary import canonical_type
from homing.errors import InvalidArgument, NotFound

SUFFIXES = ("", ".json", ".jsonl")


@dataclass(frozen=True, slots=True)
class HomeFile:
    """The devices (groups among them) and rooms that were read."""

    devices: tuple[Device, ...]
    rooms: tuple[Room, ...] = ()


def load_home(path: Path | str) -> HomeFile:
    """Reads a file or a folder and says by its content what it is.

    A folder may hold a Home Assistant export (`core.entity_registry`, `core.area_registry`, …), or `devices`, `rooms`
    or `areas`, and `spec` (profiles) as .json or .jsonl. A device without commands gets the usual ones of its type.
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path)
    return _read_data(read_json(path), path)


def read_home(data: Any) -> HomeFile:
    """A home from data that is in memory already, in any form that a file may have. Raises InvalidArgument.

    `{"devices": []}` is an empty home; what says nothing about devices is none.
    """
    if isinstance(data, Mapping) and data.get("devices") == [] and not data.get("groups"):
        return HomeFile((), tuple(_rooms(data.get("rooms"), Path("the home"))))
    try:
        return _read_data(data, Path("the home"))
    except ValidationError as error:
        raise InvalidArgument(f"the home: {_first(error)}") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidArgument(
            f"the home cannot be read ({type(error).__name__}: {error}); "
            'it looks like {"devices": [{"id", "name", "type", "room"}], "rooms": [{"name"}]}'
        ) from error


def load_commands(path: Path | str) -> list[CommandSpec]:
    """Every command of a profile file, in order: an array or JSONL of profiles, or of commands themselves."""
    return [command for commands in load_profiles(path).values() for command in commands]


def load_profiles(path: Path | str) -> dict[str, tuple[CommandSpec, ...]]:
    """Commands by profile id; commands that stand outside a profile are under the empty id."""
    data = read_json(Path(path))
    if isinstance(data, Mapping) and "profiles" in data:
        data = data["profiles"]
    return _profiles(data if isinstance(data, list) else [data], Path(path))


def read_json(path: Path) -> Any:
    """A JSON document, or the list of the lines of a JSONL file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFound(f"no home at {path}; pass a .json or .jsonl file, or a folder with one") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path} cannot be read as UTF-8 text: {error}") from error
    try:
        return json.loads(text)
    except json.JSONDecodeError as whole:
        rows = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                try:
                    rows.append(json.loads(line))
                except json.JSONDecodeError as error:
                    # A document over several lines is wrong where the document is; a JSONL file where the line is.
                    where = f"line {number}: {error.msg}" if rows else f"line {whole.lineno}: {whole.msg}"
                    raise InvalidArgument(f"{path} is neither JSON nor JSONL, {where}") from None
        return rows


def _read_folder(folder: Path) -> HomeFile:
    registry = _find(folder, "core.entity_registry", "entity_registry", "entities")
    if registry is not None:
        parts = {
            name: read_json(found)
            for name in ("area", "device", "floor")
            if (found := _find(folder, f"core.{name}_registry", f"{name}_registry"))
        }
        return _home(*read_entities(read_json(registry), **parts))
    listed = _find(folder, "devices", "home")
    if listed is None:
        raise NotFound(f"{folder} holds no devices.json, devices.jsonl, home.json or core.entity_registry")
    places = _find(folder, "rooms", "areas")
    profiles = _find(folder, "spec", "profiles")
    known = load_profiles(profiles) if profiles else None
    return _read_data(read_json(listed), listed, places=read_json(places) if places else None, profiles=known)


def _find(folder: Path, *names: str) -> Path | None:
    return next((p for name in names for suffix in SUFFIXES if (p := folder / f"{name}{suffix}").is_file()), None)


def _read_data(
    data: Any, path: Path, *, places: Any = None, profiles: Mapping[str, tuple[CommandSpec, ...]] | None = None
) -> HomeFile:
    _check_text(data, path)
    if isinstance(data, Mapping) and "items" in data:
        return _home(read_items(data["items"], data.get("rooms") or places))
    if isinstance(data, Mapping) and "entities" in data.get("data", {}):
        return _home(*read_entities(data))
    if isinstance(data, Mapping):
        profiles = profiles or _profiles(data.get("profiles") or [], path)
        places = data.get("rooms") or data.get("areas") or places
        rows = [*(data.get("devices") or []), *(data.get("groups") or [])]
    else:
        rows = data
    if not isinstance(rows, list) or not rows or not all(isinstance(row, Mapping) for row in rows):
        raise InvalidArgument(f'{path} lists no devices; expected a list of objects or {{"devices": […]}}')
    if any("entity_id" in row or "area_id" in row for row in rows):
        return _home(*read_entity_rows(rows, places))
    return _home([_device(row, profiles or {}, path, at) for at, row in enumerate(rows, 1)], _rooms(places, path))


def _device(row: Mapping[str, Any], profiles: Mapping[str, tuple[CommandSpec, ...]], path: Path, number: int) -> Device:
    fields = {key: value for key, value in row.items() if key != "profile"}
    commands = fields.get("commands")
    if isinstance(commands, str) or (not commands and row.get("profile")):
        name = commands if isinstance(commands, str) else str(row["profile"])
        if name not in profiles:
            known = ", ".join(sorted(profiles)) or "none"
            raise InvalidArgument(f"{path}: device {number} has the profile {name!r}; known are: {known}")
        fields["commands"] = profiles[name]
    try:
        return Device.model_validate(fields)
    except ValidationError as error:
        raise InvalidArgument(f"{path}: device {number} ({row.get('id', 'no id')}): {_first(error)}") from None


def _profiles(rows: Iterable[Any], path: Path) -> dict[str, tuple[CommandSpec, ...]]:
    found: dict[str, list[CommandSpec]] = {}
    for number, row in enumerate(rows, 1):
        try:
            if isinstance(row, Mapping) and ("commands" in row or "capabilities" in row):
                name = str(row.get("id") or row.get("profile") or row.get("name") or number)
                listed = row["commands"] if "commands" in row else row["capabilities"]
                found.setdefault(name, []).extend(CommandSpec.model_validate(item) for item in listed)
            else:
                found.setdefault("", []).append(CommandSpec.model_validate(row))
        except ValidationError as error:
            raise InvalidArgument(f"{path}: profile {number}: {_first(error)}") from None
    return {name: tuple(commands) for name, commands in found.items()}


def _rooms(places: Any, path: Path) -> list[Room]:
    """Rooms as names or objects; an entry of the type floor names a floor that rooms point to."""
    if isinstance(places, str):
        raise InvalidArgument(f"{path}: rooms are a list of names or objects; got one text: put it in a list")
    rows = [{"name": row} if isinstance(row, str) else row for row in places or []]
    floors = {row.get("id"): row.get("name") for row in rows if row.get("type") == "floor"}
    try:
        return [
            Room(
                name=row.get("name", ""),
                floor=floors.get(row.get("floor"), row.get("floor")),
                aliases=row.get("aliases"),
            )
            for row in rows
            if row.get("type") != "floor"
        ]
    except ValidationError as error:
        raise InvalidArgument(f"{path}: rooms: {_first(error)}") from None


def _home(devices: Iterable[Device], rooms: Iterable[Room] = ()) -> HomeFile:
    """A home whose devices have commands: those that they came with, or the usual ones of their type."""
    able = [
        device
        if device.commands or device.members
        else device.model_copy(update={"commands": usual_commands(canonical_type(device.type))})
        for device in devices
    ]
    return HomeFile(tuple(able), tuple(rooms))


def _check_text(data: Any, path: Path) -> None:
    """Refuses what cannot be written back: JSON may escape half of a surrogate pair, UTF-8 has no form for it."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise InvalidArgument(
            f"{path} has half of a surrogate pair in it ({half}); decode the text it came from"
        ) from None


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc'])) or 'entry'}: {first['msg']}"


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
        found.append(_entity({**row, "id": row["entity_id"], "name": name}, room))
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
        found.append(_entity({**row, "id": row.get("entity_id") or row.get("id")}, room))
    return found, list(rooms.values())


def _entity(row: Mapping[str, Any], room: Room | None) -> Device:
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
        commands=usual_commands(
            canonical_type(domain), low=attributes.get("min_temp"), high=attributes.get("max_temp")
        ),
        members=attributes.get("entity_id") if isinstance(attributes.get("entity_id"), list) else (),
        state=None if state is None else str(state),
    )


def _rows(registry: Mapping[str, Any] | None, name: str) -> list[Mapping[str, Any]]:
    if registry is None:
        return []
    data = registry.get("data", registry)
    rows = data.get(name, []) if isinstance(data, Mapping) else data
    return [row for row in rows if isinstance(row, Mapping)]


def read_items(items: Iterable[Mapping[str, Any]], rooms: Any = None) -> list[Device]:
    """The devices of a list; `label` is what people call one, `roomId` is looked up in `rooms`."""
    names = {row.get("roomId"): row.get("name") for row in _listed(rooms)}
    found = []
    for item in items:
        components = item.get("components") or []
        capabilities = [
            cap["id"] if isinstance(cap, Mapping) else cap for c in components for cap in c.get("capabilities") or []
        ]
        categories = [
            cat["name"] if isinstance(cat, Mapping) else cat for c in components for cat in c.get("categories") or []
        ]
        label = item.get("label") or item.get("name") or item["deviceId"]
        found.append(
            Device(
                id=item["deviceId"],
                name=label,
                type=categories[0] if categories else "",
                room=item.get("room") or names.get(item.get("roomId")),
                commands=tuple(command for capability in capabilities for command in SMARTTHINGS.get(capability, ())),
            )
        )
    return found


def _listed(rooms: Any) -> list[Mapping[str, Any]]:
    rows = rooms.get("items", []) if isinstance(rooms, Mapping) else rooms or []
    return [row for row in rows if isinstance(row, Mapping)]
