"""Homes as SmartThings lists them: devices with components, capabilities and categories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from homing.devices.device import CommandSpec, Device

_PERCENT: dict[str, Any] = {"type": "int", "value_range": (0, 100), "unit": "%"}
_TEMPERATURE: dict[str, Any] = {
    "description": "设置温度", "synonyms": ("set temperature",), "type": "float", "unit": ("°C", "°F"),
}  # fmt: skip

# capability → command → fields of its CommandSpec
_TABLE: dict[str, dict[str, dict[str, Any]]] = {
    "switch": {"on": {"description": "打开设备", "synonyms": ("turn on",)},
               "off": {"description": "关闭设备", "synonyms": ("turn off",)}},
    "switchLevel": {"setLevel": {"description": "设置亮度", "synonyms": ("set brightness",), **_PERCENT}},
    "colorControl": {"setColor": {"description": "设置颜色", "synonyms": ("set color",), "type": "color"}},
    "colorTemperature": {"setColorTemperature": {"description": "设置色温", "synonyms": ("set color temperature",),
                                                 "type": "int", "value_range": (1000, 30000), "unit": "K"}},
    "windowShade": {"open": {"description": "打开，拉开", "synonyms": ("open",)},
                    "close": {"description": "关闭，拉上", "synonyms": ("close",)},
                    "pause": {"description": "暂停移动", "synonyms": ("pause", "stop")}},
    "windowShadeLevel": {"setShadeLevel": {"description": "设置位置", "synonyms": ("set position",), **_PERCENT}},
    "doorControl": {"open": {"description": "打开门", "synonyms": ("open",)},
                    "close": {"description": "关闭门", "synonyms": ("close",)}},
    "lock": {"lock": {"description": "上锁", "synonyms": ("lock",)},
             "unlock": {"description": "解锁", "synonyms": ("unlock",)}},
    "thermostatCoolingSetpoint": {"setCoolingSetpoint": _TEMPERATURE},
    "thermostatHeatingSetpoint": {"setHeatingSetpoint": _TEMPERATURE},
    "airConditionerMode": {"setAirConditionerMode": {
        "description": "设置模式", "synonyms": ("set mode",), "type": "enum",
        "value_list": {"cool": "制冷", "heat": "制热", "dry": "除湿", "wind": "送风", "auto": "自动"}}},
    "fanSpeed": {"setFanSpeed": {"description": "设置风速", "synonyms": ("set fan speed",),
                                 "type": "int", "value_range": (0, 4)}},
    "audioVolume": {"setVolume": {"description": "设置音量", "synonyms": ("set volume",), **_PERCENT}},
    "audioMute": {"mute": {"description": "静音", "synonyms": ("mute",)},
                  "unmute": {"description": "取消静音", "synonyms": ("unmute",)}},
    "mediaPlayback": {"play": {"description": "播放", "synonyms": ("play",)},
                      "pause": {"description": "暂停", "synonyms": ("pause",)},
                      "stop": {"description": "停止播放", "synonyms": ("stop",)}},
    "valve": {"open": {"description": "打开阀门", "synonyms": ("open",)},
              "close": {"description": "关闭阀门", "synonyms": ("close",)}},
    "temperatureMeasurement": {"temperature": {"description": "读取温度", "synonyms": ("read temperature",)}},
    "relativeHumidityMeasurement": {"humidity": {"description": "读取湿度", "synonyms": ("read humidity",)}},
}  # fmt: skip

COMMANDS: dict[str, tuple[CommandSpec, ...]] = {
    capability: tuple(CommandSpec(id=f"{capability}.{command}", **fields) for command, fields in commands.items())
    for capability, commands in _TABLE.items()
}
"""The commands of each capability that is known here; others can be listed but not commanded."""


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
                commands=tuple(command for capability in capabilities for command in COMMANDS.get(capability, ())),
            )
        )
    return found


def _listed(rooms: Any) -> list[Mapping[str, Any]]:
    rows = rooms.get("items", []) if isinstance(rooms, Mapping) else rooms or []
    return [row for row in rows if isinstance(row, Mapping)]
