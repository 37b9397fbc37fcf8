"""Rooms: words for the same place, so that "bedroom" finds 卧室, and how an unknown room looks."""

from __future__ import annotations

import re

_TABLE = """
bedroom | 卧室 睡房 寝室 卧房 | bedroom, bed room
master bedroom | 主卧 主卧室 | master bedroom, main bedroom, primary bedroom
second bedroom | 次卧 次卧室 | second bedroom
guest room | 客房 客卧 | guest room, guest bedroom, spare room
kids room | 儿童房 孩子房间 小孩房 婴儿房 宝宝房 | kids room, kid room, children room, nursery, child room
parents room | 父母房 老人房 | parents room
study | 书房 | study, study room, library
office | 办公室 工作室 | office, home office, studio
living room | 客厅 起居室 大厅 | living room, lounge, sitting room, family room, front room
dining room | 餐厅 饭厅 | dining room
kitchen | 厨房 灶间 | kitchen, kitchenette
bathroom | 卫生间 浴室 洗手间 厕所 盥洗室 淋浴间 | bathroom, restroom, toilet, washroom, shower room
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

for _row in _TABLE.strip().splitlines():
    _concept, _chinese, _english = (part.strip() for part in _row.split("|"))
    for _word in [*_chinese.split(), *(word.strip() for word in _english.split(","))]:
        ROOM_CONCEPTS[_word] = _concept

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
