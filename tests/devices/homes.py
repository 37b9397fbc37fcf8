"""Small homes for tests, and the examples that ship with the project."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from homing.devices import CommandSpec, Device, DeviceRetriever, load_home

EXAMPLES = Path(__file__).parents[2] / "examples" / "home"
ON = CommandSpec(id="on", description="打开设备", synonyms=("turn on",))
OFF = CommandSpec(id="off", description="关闭设备", synonyms=("turn off",))
DIM = CommandSpec(id="level", description="设置亮度", type="int", value_range=(0, 100), unit="%")
READ = CommandSpec(id="read", description="读取温度")


def light(device_id: str, name: str, room: str | None = None, **fields: object) -> Device:
    """A light that can be switched and dimmed."""
    return Device.model_validate(
        {"id": device_id, "name": name, "type": "light", "room": room, "commands": (ON, OFF, DIM), **fields}
    )


def words_only(a: str, b: str) -> float:
    """A similarity without a model: the share of characters or words in common."""
    left, right = (set(text.split()) if text.isascii() else set(text) for text in (a, b))
    return len(left & right) / min(len(left), len(right)) if left and right else 0.0


@cache
def example(name: str) -> DeviceRetriever:
    """An example home with the bundled model; shared, because nothing changes it."""
    home = load_home(EXAMPLES / f"{name}.json")
    return DeviceRetriever(home.devices, home.rooms)
