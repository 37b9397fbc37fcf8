"""The usual commands of a type, for homes that list devices without saying what they can do."""

from __future__ import annotations

from typing import Any

from homing.devices.device import CommandSpec, ValueRange

_PERCENT: dict[str, Any] = {"type": "int", "value_range": (0, 100), "unit": "%"}

_TEMPERATURE: dict[str, Any] = {
    "description": "设置温度", "synonyms": ("set temperature",), "type": "float", "unit": ("°C", "°F"),
    # Of a device that tells no range and may count in either unit, only nonsense is known.
    "value_range": (0, 110),
}  # fmt: skip

# type → command id → description, synonyms, then what else a CommandSpec has
_SWITCHED: dict[str, dict[str, Any]] = {
    "turn_on": {"description": "打开设备", "synonyms": ("turn on",)},
    "turn_off": {"description": "关闭设备", "synonyms": ("turn off",)},
}
_TABLE: dict[str, dict[str, dict[str, Any]]] = {
    "light": {
        **_SWITCHED,
        "toggle": {"description": "切换开关状态", "synonyms": ("toggle",)},
        "set_brightness": {"description": "设置亮度", "synonyms": ("set brightness",), **_PERCENT},
        "set_color": {"description": "设置颜色", "synonyms": ("set color",), "type": "color", "unit": ()},
        "set_color_temperature": {
            "description": "设置色温", "synonyms": ("set color temperature",), "type": "int",
            "value_range": (2000, 6500), "unit": "K",
        },
    },
    "climate": {
        **_SWITCHED,
        "set_temperature": _TEMPERATURE,
        "set_hvac_mode": {
            "description": "设置模式", "synonyms": ("set mode",), "type": "enum",
            "value_list": {"cool": "制冷", "heat": "制热", "dry": "除湿", "fan_only": "送风", "auto": "自动"},
        },
        "set_fan_mode": {"description": "设置风速", "synonyms": ("set fan speed",), "type": "enum",
                         "value_list": {"low": "低", "medium": "中", "high": "高", "auto": "自动"}},
    },
    "fan": {**_SWITCHED, "set_percentage": {"description": "设置风速", "synonyms": ("set fan speed",), **_PERCENT}},
    "cover": {
        "open": {"description": "打开，拉开", "synonyms": ("open",)},
        "close": {"description": "关闭，拉上", "synonyms": ("close",)},
        "stop": {"description": "停止移动", "synonyms": ("stop",)},
        "set_position": {"description": "设置位置", "synonyms": ("set position",), **_PERCENT},
    },
    "valve": {
        "open": {"description": "打开阀门", "synonyms": ("open",)},
        "close": {"description": "关闭阀门", "synonyms": ("close",)},
        "set_position": {"description": "设置位置", "synonyms": ("set position",), **_PERCENT},
    },
    "lock": {
        "lock": {"description": "上锁", "synonyms": ("lock",)},
        "unlock": {"description": "解锁", "synonyms": ("unlock",)},
    },
    "media_player": {
        **_SWITCHED,
        "play": {"description": "播放", "synonyms": ("play", "resume")},
        "pause": {"description": "暂停", "synonyms": ("pause",)},
        "stop": {"description": "停止播放", "synonyms": ("stop",)},
        "next": {"description": "下一个", "synonyms": ("next track",)},
        "previous": {"description": "上一个", "synonyms": ("previous track",)},
        "set_volume": {"description": "设置音量", "synonyms": ("set volume",), **_PERCENT},
        "mute": {"description": "静音", "synonyms": ("mute",)},
        "unmute": {"description": "取消静音", "synonyms": ("unmute",)},
    },
    "vacuum": {
        "start": {"description": "开始清扫", "synonyms": ("start cleaning",)},
        "pause": {"description": "暂停", "synonyms": ("pause",)},
        "stop": {"description": "停止", "synonyms": ("stop",)},
        "return_to_base": {"description": "返回充电", "synonyms": ("return to base",)},
    },
    "humidifier": {**_SWITCHED, "set_humidity": {"description": "设置湿度", "synonyms": ("set humidity",), **_PERCENT}},
    "water_heater": {
        **_SWITCHED,
        "set_temperature": _TEMPERATURE,
    },
    "scene": {"turn_on": {"description": "激活场景", "synonyms": ("activate", "turn on")}},
    "script": {"turn_on": {"description": "运行", "synonyms": ("run", "turn on")}},
    **dict.fromkeys(
        ("switch", "air_purifier", "dehumidifier", "camera", "projector", "range_hood", "kettle", "oven",
         "coffee_machine", "rice_cooker", "washer", "dryer", "dishwasher", "siren", "aroma_diffuser"), _SWITCHED,
    ),
}  # fmt: skip

USUAL: dict[str, tuple[CommandSpec, ...]] = {
    type_name: tuple(CommandSpec(id=command_id, **fields) for command_id, fields in commands.items())
    for type_name, commands in _TABLE.items()
}
"""The usual commands by canonical type; a type that is missing here can only be read."""


def usual_commands(type_name: str, *, low: float | None = None, high: float | None = None) -> tuple[CommandSpec, ...]:
    """The usual commands of a type, with the range of its temperature where the device tells it."""
    commands = USUAL.get(type_name, ())
    if low is None and high is None:
        return commands
    bounds = ValueRange(minimum=low, maximum=high)
    return tuple(
        command.model_copy(update={"value_range": bounds}) if command.id == "set_temperature" else command
        for command in commands
    )
