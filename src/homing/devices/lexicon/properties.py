"""What can be read or set on a device, the devices that have it, and the words that are values."""

from __future__ import annotations

# property | types that have it | Chinese words | English words; the first word of each is how it is written
_TABLE = """
brightness | light | 亮度 光亮度 明暗 | brightness, light level, dimness
temperature | climate sensor water_heater weather refrigerator oven | 温度 气温 室温 | temperature, temp, setpoint
color | light | 颜色 色彩 | color, colour, hue
color_temperature | light | 色温 冷暖 | color temperature, colour temperature, color temp
volume | media_player | 音量 声音 响度 | volume, sound, loudness
position | cover valve | 位置 开合度 开度 百分比 | position
speed | fan air_purifier climate range_hood | 风速 风量 转速 档位 风力 速度 | speed, fan speed
humidity | humidifier dehumidifier sensor | 湿度 | humidity
mode | climate fan humidifier air_purifier washer vacuum | 模式 | mode, preset
channel | media_player | 频道 | channel
source | media_player | 信号源 输入源 | source, input
battery | sensor binary_sensor vacuum lock | 电量 电池 | battery
state | | 状态 情况 | state, status
air_quality | sensor air_purifier | 空气质量 | air quality
power | sensor switch | 功率 耗电量 用电量 | power usage, power consumption
"""

PROPERTIES: dict[str, str] = {}
"""Property by its comparable form."""
PROPERTY_TYPES: dict[str, frozenset[str]] = {}
"""The types of device that have a property; empty means any."""
PROPERTY_WORDS: dict[str, tuple[str, str]] = {}
"""How a property is written in Chinese and English."""

for _row in _TABLE.strip().splitlines():
    _name, _types, _chinese, _english = (part.strip() for part in _row.split("|"))
    _forms = [*_chinese.split(), *(word.strip() for word in _english.split(","))]
    PROPERTIES.update(dict.fromkeys(_forms, _name))
    PROPERTY_TYPES[_name] = frozenset(_types.split())
    PROPERTY_WORDS[_name] = (_chinese.split()[0], _english.split(",")[0].strip())

PERCENT_PROPERTY = {"light": "brightness", "cover": "position", "media_player": "volume", "fan": "speed"}
"""What "50%" means on a device where the sentence does not say; elsewhere whatever the device takes in percent."""

# canonical value | words
_COLORS = """
red | 红色 红 大红 red
orange | 橙色 橘色 橘黄色 orange
yellow | 黄色 yellow
green | 绿色 green
cyan | 青色 cyan
blue | 蓝色 blue
purple | 紫色 purple violet
pink | 粉色 粉红色 pink
white | 白色 white
warm white | 暖白 暖白色 暖光 暖黄 暖黄色 暖色
cool white | 冷白 冷白色 冷光 冷色
"""
_MODES = """
cool | 制冷 冷风 cooling cool
heat | 制热 暖风 heating
dry | 除湿 抽湿 干燥 dehumidify
fan_only | 送风 通风
auto | 自动 auto automatic
sleep | 睡眠 静眠 sleep
eco | 节能 eco
quiet | 安静 quiet
strong | 强力 强劲 turbo
"""


def _values(table: str) -> dict[str, str]:
    found = {}
    for row in table.strip().splitlines():
        value, words = (part.strip() for part in row.split("|"))
        found.update(dict.fromkeys(words.split(), value))
    return found


COLORS = {**_values(_COLORS), "warm white": "warm white", "cool white": "cool white"}
MODES = _values(_MODES)

EXTREMES: dict[str, str] = dict.fromkeys(
    (
        *("最大", "最亮", "最高", "最热", "最强", "最响", "全开", "满"),
        *("max", "maximum", "full", "highest", "brightest", "hottest", "loudest", "fully"),
    ),
    "max",
) | dict.fromkeys(
    ("最小", "最暗", "最低", "最冷", "最弱", "min", "minimum", "lowest", "dimmest", "coldest", "quietest", "minimal"),
    "min",
)

UNITS: dict[str, str] = {
    **dict.fromkeys(("%", "percent", "per cent", "pct"), "%"),
    **dict.fromkeys(("°", "度", "degrees", "degree"), "°"),
    **dict.fromkeys(("°c", "摄氏度", "degrees celsius", "degree celsius", "celsius", "degrees c"), "°C"),
    **dict.fromkeys(("°f", "华氏度", "degrees fahrenheit", "fahrenheit", "degrees f"), "°F"),
    **dict.fromkeys(("k", "开尔文", "kelvin"), "K"),
    **dict.fromkeys(("档", "挡", "级"), ""),
}
