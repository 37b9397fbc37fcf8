"""Kinds of device and rooms: the words people use, and the types, classes and places they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass

from homing.devices.lexicon.words import rows, words

SURE_CLASSES = frozenset(
    {"garage", "garage_door", "window", "gate", "awning", "door", "exhaust", "purifier", "dehumidifier", "projector"}
)
"""Classes a device must be known to have: a cover of unknown class may be a curtain, but is no garage door."""


@dataclass(frozen=True, slots=True)
class TypeWord:
    """What a word may stand for: types, each with the classes it is limited to (none: all of the type).

    The first type is the one that is written into a QueryIR; `main` is the class of a device that is called so: an air
    conditioner is one, though whoever says the word may also mean a thermostat.
    """

    limits: tuple[tuple[str, frozenset[str]], ...]
    main: str | None = None

    @classmethod
    def of(cls, type_name: str) -> TypeWord:
        """A word for all of one type."""
        return cls(((type_name, frozenset()),))

    @property
    def hint(self) -> str:
        """The type that is written into a QueryIR."""
        return self.limits[0][0]

    @property
    def types(self) -> frozenset[str]:
        """Every type it may mean."""
        return frozenset(name for name, _ in self.limits)

    @property
    def narrow(self) -> bool:
        """Whether it says more than the type."""
        return any(classes for _, classes in self.limits)

    @property
    def single(self) -> bool:
        """Whether it tells covers apart: 纱帘 and gate do, 窗帘 does not."""
        return self.types == {"cover"} and 1 <= len(self.limits[0][1]) <= 2

    def means(self, type_name: str, classes: frozenset[str]) -> bool:
        """Whether a device of that type and those classes may be meant."""
        for name, limit in self.limits:
            if name == type_name:
                unknown = not classes and not limit & SURE_CLASSES
                return not limit or unknown or not limit.isdisjoint(classes)
        return False


# types (a class behind a colon) | Chinese words | English words
_TYPES = """
light | 灯 电灯 灯光 灯具 灯泡 照明 灯饰 灯带 灯条 灯仔 | light, lamp, lighting, bulb, light bulb
switch | 开关 | switch
switch:outlet | 插座 插头 排插 插排 电源 | outlet, plug, socket, smart plug, power strip
climate:ac,thermostat | 空调 空调机 冷气 冷气机 冷暖机 分体机 | ac, a c, air conditioner, air conditioning, aircon
climate:ac,thermostat | | air con
climate:thermostat,ac,heater | 温控器 恒温器 温控 | thermostat, climate
climate:heater,thermostat | 暖气 地暖 暖气片 取暖器 电暖器 | heater, heating, radiator, heat, underfloor heating
fan | 风扇 电扇 电风扇 扇 | fan
fan:exhaust | 排气扇 排风扇 换气扇 抽风机 抽气扇 新风 新风机 | exhaust fan, extractor fan, ventilation
range_hood | 油烟机 抽油烟机 | range hood, extractor hood
cover:curtain,blind,shade | 窗帘 帘子 帘 | cover, window covering
cover:curtain | 布帘 纱帘 | curtain, drape
cover:blind,shade | 百叶窗 百叶帘 百叶 | blind, venetian blind
cover:shade,blind | 卷帘 遮光帘 遮阳帘 | shade, roller shade, roller blind, window shade
cover:shutter | 卷帘门 卷闸门 | shutter, roller shutter
cover:garage binary_sensor:garage_door | 车库门 | garage door
cover:window binary_sensor:window | 窗户 窗 窗子 天窗 | window, skylight
cover:gate,garage | 院门 闸门 铁门 铁闸 大闸 | gate
cover:awning | 遮阳篷 雨棚 | awning
lock cover:door,garage,gate binary_sensor:door | 门 | door
lock | 门锁 锁 智能锁 | lock, door lock, smart lock, deadbolt
media_player:tv | 电视 电视机 | tv, television, telly
media_player:speaker | 音箱 音响 喇叭 智能音箱 | speaker, sound bar, soundbar, stereo
media_player | 播放器 音乐 歌 歌曲 视频 | media player, player, music player, music, song, track, video, playback
projector media_player:projector | 投影仪 投影 投影机 | projector
lawn_mower | 割草机 剪草机 除草机 割草机器人 | lawn mower, mower, robot mower, lawnmower
vacuum | 扫地机 扫地机器人 吸尘器 扫拖机器人 吸尘机 机器人 | vacuum, robot vacuum, vacuum cleaner, robot, hoover
humidifier | 加湿器 | humidifier
dehumidifier humidifier:dehumidifier | 除湿机 除湿器 抽湿机 抽湿器 | dehumidifier
air_purifier fan:purifier | 空气净化器 净化器 空净 空气清净机 清净机 空气清新机 | air purifier, purifier
water_heater | 热水器 | water heater, boiler
valve | 阀门 阀 水阀 燃气阀 瓦斯阀 煤气阀 燃气 瓦斯 煤气 水龙头 | valve, water valve
camera | 摄像头 摄像机 监控 | camera, webcam
sensor binary_sensor | 传感器 感应器 感测器 | sensor, detector
scene script | 场景 情景 | scene, script
washer | 洗衣机 | washer, washing machine
dryer | 烘干机 干衣机 | dryer, tumble dryer
dishwasher | 洗碗机 | dishwasher
refrigerator | 冰箱 | refrigerator, fridge
oven | 烤箱 焗炉 烤炉 | oven
microwave | 微波炉 | microwave
stove | 灶台 炉灶 燃气灶 电磁炉 煮食炉 | stove, cooktop, hob, range, induction cooktop
air_fryer | 空气炸锅 | air fryer
fireplace | 壁炉 | fireplace
rice_cooker | 电饭煲 电饭锅 电锅 | rice cooker
kettle | 热水壶 电水壶 水壶 烧水壶 | kettle
coffee_machine | 咖啡机 | coffee machine, coffee maker, espresso machine
drying_rack | 晾衣架 晾衣机 | drying rack, clothes rack
aroma_diffuser | 香薰机 香薰 | aroma diffuser, diffuser
pet_feeder | 喂食器 宠物喂食器 喂食机 | pet feeder, feeder
doorbell | 门铃 | doorbell
alarm siren | 报警器 警报器 警报 警笛 安防 安防系统 保全 保全系统 警戒 防盗系统 | alarm, siren, alarm system
alarm siren | | security system
computer | 电脑 计算机 | computer, pc
router | 路由器 | router
timer | 计时器 定时器 倒计时 闹钟 | timer, alarm clock, countdown
"""

TYPE_WORDS: dict[str, TypeWord] = {}
"""Type word by its comparable form."""


def _type_word(cell: str) -> TypeWord:
    limits = []
    for part in cell.split():
        name, _, classes = part.partition(":")
        limits.append((name, tuple(filter(None, classes.split(",")))))
    main = next((classes[0] for _, classes in limits if classes), None)
    return TypeWord(tuple((name, frozenset(classes)) for name, classes in limits), main)


for _types, *_languages in rows(_TYPES):
    TYPE_WORDS.update(dict.fromkeys(words(*_languages), _type_word(_types)))

ANY_DEVICE = frozenset(
    {"设备", "电器", "家电", "东西", "嘢", "装置", "device", "appliance", "everything", "thing", "stuff", "gadget"}
)
"""Words for a device of whatever kind."""

ALWAYS_ASK = frozenset({"lock", "alarm", "siren", "valve", "water_heater", "oven"})
"""Types where acting on several because one was meant would do harm: a sentence must say "all"."""

MACHINE_TYPES: dict[str, str] = {
    "airconditioner": "climate", "thermostat": "climate", "smartlock": "lock", "smartplug": "switch",
    "outlet": "switch", "plug": "switch", "blind": "cover", "curtain": "cover", "windowshade": "cover",
    "garagedoor": "cover", "garage door": "cover", "television": "media_player", "tv": "media_player",
    "speaker": "media_player", "robotcleaner": "vacuum", "airpurifier": "air_purifier", "lightbulb": "light",
    "input boolean": "switch", "contactsensor": "binary_sensor", "motionsensor": "binary_sensor",
    "networkaudio": "media_player", "waterheater": "water_heater", "alarm control panel": "alarm",
    "lawnmower": "lawn_mower",
}  # fmt: skip
"""Type names that programs write and people do not say."""


# concept | Chinese words | English words
_ROOMS = """
bedroom | 卧室 睡房 寝室 卧房 | bedroom, bed room
master bedroom | 主卧 主卧室 主人房 主人套房 | master bedroom, main bedroom, primary bedroom
second bedroom | 次卧 次卧室 | second bedroom
guest room | 客房 客卧 | guest room, guest bedroom, spare room
kids room | 儿童房 孩子房间 小孩房 婴儿房 宝宝房 | kids room, kid room, children room, nursery, child room
parents room | 父母房 老人房 | parents room
study | 书房 | study, study room, library
office | 办公室 工作室 | office, home office, studio
living room | 客厅 起居室 大厅 | living room, lounge, sitting room, family room, front room
dining room | 餐厅 饭厅 | dining room
kitchen | 厨房 灶间 | kitchen, kitchenette
bathroom | 卫生间 浴室 洗手间 厕所 冲凉房 盥洗室 淋浴间 | bathroom, restroom, toilet, washroom, shower room
balcony | 阳台 露台 | balcony, terrace
entrance | 玄关 门厅 入口 门口 | entrance, entryway, entry, foyer, front hall
hallway | 走廊 过道 走道 | hallway, hall, corridor, landing
garage | 车库 | garage, carport
garden | 花园 院子 庭院 后院 前院 | garden, yard, backyard, front yard, courtyard
patio | 天井 | patio, deck, porch
basement | 地下室 | basement, cellar
attic | 阁楼 | attic, loft
storage room | 储物间 储藏室 杂物间 | storage room, pantry, store room, utility room, box room
closet | 衣帽间 更衣室 | closet, walk in closet, dressing room, cloakroom
laundry room | 洗衣房 洗衣间 | laundry room, laundry
gym | 健身房 | gym
media room | 影音室 家庭影院 | media room, home theater, home theatre, cinema room, tv room
stairs | 楼梯 楼梯间 | stairs, staircase, stairwell
workshop | 车间 | workshop
tea room | 茶室 | tea room
meeting room | 会议室 | meeting room, conference room
outside | 室外 户外 屋外 外面 | outside, outdoors, outdoor
upstairs | 楼上 | upstairs
downstairs | 楼下 | downstairs, ground floor
"""

ROOM_CONCEPTS: dict[str, str] = {}
"""Concept of a room by its comparable form."""

for _concept, *_languages in rows(_ROOMS):
    ROOM_CONCEPTS.update(dict.fromkeys(words(*_languages), _concept))

ROOM_KINDS = {"bedroom": {"master bedroom", "second bedroom"}, "outside": {"garden", "patio", "balcony"}}
"""Words for rooms of a kind, which name none of them."""

LOOKS_LIKE_ROOM = re.compile(
    r".+(?:室|房|厅|房间|廊|院|楼|层|卧|吧台|角落)$|.+ (?:room|bedroom|bathroom|floor|hall|wing)$"
)
"""An unknown word of this shape is a room nobody has told us about, not a device."""


def says_a_room(form: str) -> bool:
    """Whether a comparable form is the word for a room, in this home or not."""
    return form in ROOM_CONCEPTS or LOOKS_LIKE_ROOM.match(form) is not None


_ORDINALS = ["zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_CHINESE_DIGITS = "零一二三四五六七八九十"
_FLOOR = re.compile(
    rf"^(?:第)?(?P<zh>[{_CHINESE_DIGITS}]|\d{{1,2}})(?:楼|层)$|^(?P<word>{'|'.join(_ORDINALS)}) floor$"
    r"|^(?P<nth>\d{1,2})(?:st|nd|rd|th) floor$|^floor (?P<number>\d{1,2})$"
    r"|^(?P<short>\d{1,2}) ?f$|^level (?P<level>\d{1,2})$"
)


def floor_number(form: str) -> int | None:
    """Which floor 二楼, 2楼, second floor, 2nd floor, floor 2 or 2F is; None for what names no floor by number."""
    found = _FLOOR.match(form)
    if found is None:
        return None
    if found["word"]:
        return _ORDINALS.index(found["word"])
    digits = next(found[group] for group in ("zh", "nth", "number", "short", "level") if found[group])
    return int(digits) if digits.isdigit() else _CHINESE_DIGITS.index(digits)


FLOOR_WORDS = re.compile(
    rf"(?:第)?(?:[{_CHINESE_DIGITS}]|\d{{1,2}})(?:楼|层)|(?:{'|'.join(_ORDINALS)}|\d{{1,2}}(?:st|nd|rd|th)) floor\b"
    r"|floor \d{1,2}\b|\b\d{1,2}f\b|level \d{1,2}\b"
)
"""A floor by number, anywhere in a sentence."""
