"""The usual commands of a type and of a SmartThings capability, for homes that do not say what their devices can do."""

from __future__ import annotations

from typing import Any

from homing.devices.device import CommandSpec, ValueRange

_Fields = dict[str, Any]
"""What a CommandSpec has beside its id."""


def _said(chinese: str, *english: str, **fields: Any) -> _Fields:
    return {"description": chinese, "synonyms": english, **fields}


_PERCENT: _Fields = {"type": "int", "value_range": (0, 100), "unit": "%"}
_ON, _OFF = _said("打开设备", "turn on"), _said("关闭设备", "turn off")
_LOCKING = {"lock": _said("上锁", "lock"), "unlock": _said("解锁", "unlock")}
_VALVE = {"open": _said("打开阀门", "open"), "close": _said("关闭阀门", "close")}
_OPENING = {"open": _said("打开，拉开", "open"), "close": _said("关闭，拉上", "close")}
_MUTING = {"mute": _said("静音", "mute"), "unmute": _said("取消静音", "unmute")}
_BRIGHTNESS = _said("设置亮度", "set brightness", **_PERCENT)
_POSITION = _said("设置位置", "set position", **_PERCENT)
_VOLUME = _said("设置音量", "set volume", **_PERCENT)
_KELVIN = _said("设置色温", "set color temperature", type="int", unit="K")
_COLOR = _said("设置颜色", "set color", type="color")
_DEGREES = _said("设置温度", "set temperature", type="float", unit=("°C", "°F"))
# Of a device that tells no range and may count in either unit, only nonsense is known.
_TEMPERATURE = {**_DEGREES, "value_range": (0, 110)}
_MODE = _said("设置模式", "set mode", type="enum")
_MODES = {"cool": "制冷", "heat": "制热", "dry": "除湿"}
_FAN_MODE = _said(
    *("设置风速", "set fan speed"),
    type="enum",
    value_list={"low": "低", "medium": "中", "high": "高", "auto": "自动"},
)
_SWITCHED = {"turn_on": _ON, "turn_off": _OFF}
_SWITCHED_TYPES = (
    "switch", "dehumidifier", "camera", "projector", "range_hood", "kettle", "coffee_machine",
    "rice_cooker", "washer", "dryer", "dishwasher", "siren", "aroma_diffuser",
    "stove", "air_fryer", "fireplace", "microwave",
)  # fmt: skip

_BY_TYPE: dict[str, dict[str, _Fields]] = {
    **dict.fromkeys(_SWITCHED_TYPES, _SWITCHED),
    "light": {
        **_SWITCHED,
        "toggle": _said("切换开关状态", "toggle"),
        "set_brightness": _BRIGHTNESS,
        "set_color": _COLOR,
        "set_color_temperature": {**_KELVIN, "value_range": (2000, 6500)},
    },
    "climate": {
        **_SWITCHED,
        "set_temperature": _TEMPERATURE,
        "set_hvac_mode": {**_MODE, "value_list": {**_MODES, "fan_only": "送风", "auto": "自动"}},
        "set_fan_mode": _FAN_MODE,
    },
    "fan": {**_SWITCHED, "set_percentage": _said("设置风速", "set fan speed", **_PERCENT)},
    "cover": {**_OPENING, "stop": _said("停止移动", "stop"), "set_position": _POSITION},
    "valve": {**_VALVE, "set_position": _POSITION},
    "lock": _LOCKING,
    "media_player": {
        **_SWITCHED,
        "play": _said("播放", "play", "resume"),
        "play_media": _said("播放指定内容", "play media content", type="string"),
        "pause": _said("暂停", "pause"),
        "stop": _said("停止播放", "stop"),
        "next": _said("下一个", "next track"),
        "previous": _said("上一个", "previous track"),
        "set_volume": _VOLUME,
        **_MUTING,
    },
    "vacuum": {
        "start": _said("开始清扫", "start cleaning"),
        "pause": _said("暂停", "pause"),
        "stop": _said("停止", "stop"),
        "return_to_base": _said("返回充电", "return to base"),
        "clean_area": _said("清扫指定区域", "clean the cleaning area", type="string"),
    },
    "lawn_mower": {
        "start_mowing": _said("开始割草", "start mowing"),
        "pause": _said("暂停", "pause"),
        "dock": _said("返回充电", "return to dock"),
    },
    "alarm": {
        "arm_away": _said("布防", "arm"),
        "disarm": _said("撤防", "disarm"),
    },
    "humidifier": {**_SWITCHED, "set_humidity": _said("设置湿度", "set humidity", **_PERCENT)},
    "water_heater": {**_SWITCHED, "set_temperature": _TEMPERATURE},
    "air_purifier": {
        **_SWITCHED,
        "set_mode": {
            **_MODE,
            "value_list": {"auto": "自动", "sleep": "睡眠", "low": "低", "medium": "中", "high": "高"},
        },
    },
    "oven": {**_SWITCHED, "set_temperature": {**_DEGREES, "value_range": (30, 550)}},
    "scene": {"turn_on": _said("激活场景", "activate", "turn on")},
    "script": {"turn_on": _said("运行", "run", "turn on")},
    "switch": {**_SWITCHED, "toggle": _said("切换开关状态", "toggle")},
}

_BY_CAPABILITY: dict[str, dict[str, _Fields]] = {
    "switch": {"on": _ON, "off": _OFF},
    "switchLevel": {"setLevel": _BRIGHTNESS},
    "colorControl": {"setColor": _COLOR},
    "colorTemperature": {"setColorTemperature": {**_KELVIN, "value_range": (1000, 30000)}},
    "windowShade": {**_OPENING, "pause": _said("暂停移动", "pause", "stop")},
    "windowShadeLevel": {"setShadeLevel": _POSITION},
    "doorControl": {"open": _said("打开门", "open"), "close": _said("关闭门", "close")},
    "lock": _LOCKING,
    "thermostatCoolingSetpoint": {"setCoolingSetpoint": _DEGREES},
    "thermostatHeatingSetpoint": {"setHeatingSetpoint": _DEGREES},
    "airConditionerMode": {
        "setAirConditionerMode": {**_MODE, "value_list": {**_MODES, "wind": "送风", "auto": "自动"}}
    },
    "fanSpeed": {"setFanSpeed": _said("设置风速", "set fan speed", type="int", value_range=(0, 4))},
    "audioVolume": {"setVolume": _VOLUME},
    "audioMute": _MUTING,
    "mediaPlayback": {
        "play": _said("播放", "play"),
        "pause": _said("暂停", "pause"),
        "stop": _said("停止播放", "stop"),
    },
    "valve": _VALVE,
    "temperatureMeasurement": {"temperature": _said("读取温度", "read temperature")},
    "relativeHumidityMeasurement": {"humidity": _said("读取湿度", "read humidity")},
}

USUAL: dict[str, tuple[CommandSpec, ...]] = {
    type_name: tuple(CommandSpec(id=command, **fields) for command, fields in commands.items())
    for type_name, commands in _BY_TYPE.items()
}
"""The usual commands by canonical type; a type that is missing here can only be read."""

SMARTTHINGS: dict[str, tuple[CommandSpec, ...]] = {
    capability: tuple(CommandSpec(id=f"{capability}.{command}", **fields) for command, fields in commands.items())
    for capability, commands in _BY_CAPABILITY.items()
}
"""The commands of each capability that is known here; others can be listed but not commanded."""


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
