"""Verbs: what each means, what is its opposite, and how it is written in an answer.

A meaning is a set of concepts, because 打开 is both "turn on" and "open", and only the device decides which.
"""

from __future__ import annotations

from dataclasses import dataclass

from homing.devices.lexicon.words import rows, words


@dataclass(frozen=True, slots=True)
class Action:
    """What a verb asks for; `property` and `type` are what it implies (调亮: brightness; illuminate: a light)."""

    concepts: frozenset[str]
    property: str | None = None
    type: str | None = None


# concepts | property | type | Chinese words | English words
_VERBS = """
on open     | | | 打开 开启 开 开开 开一开 开打开 开下 开起来 打开下 开咗 开返 开埋 |
on          | | | 点亮 启用 激活 通电 亮起 亮起来 开机 着灯 | activate, enable, fire up
on start    | | | 启动 |
off close   | | | 关闭 关掉 关上 关了 关 关一关 关好 关下 闩 闩咗 闩埋 闩返 熄咗 |
off         | | | 断开 切断 断一下 |
off         | | | 熄灭 熄 熄掉 灭掉 灭 停用 断电 关机 禁用 熄埋 熄返 | deactivate, disable, kill, douse, extinguish
open        | | | 拉开 敞开 推开 卷起 伸出 展开 | open, extend, unfold
open up     | | | 升起 升起来 拉起 升上去 拉起来 |
close       | | | 拉上 合上 闭上 拉下 合拢 拉埋 遮上 收回 收起 收起来 | close, shut, draw, retract
close down  | | | 降下 放下 降下来 放下来 落埋 落返 落低 |
lock        | | | 锁上 上锁 锁好 反锁 锁住 锁定 锁一下 锁起来 锁 锁咗 锁埋 锁返 | lock, lock up, secure
unlock      | | | 解锁 解除锁定 | unlock
open unlock | | lock | 开门 开锁 |
up          | brightness | | 调亮 变亮 亮一点 亮一些 亮点 亮些 更亮 开亮 亮啲 光啲 光一点 再亮 校光 调光啲 |
up          | brightness | | 校光啲 弄亮 | brighten, brighter, more light, lighter
down        | brightness | | 调暗 变暗 暗一点 暗一些 暗点 暗些 更暗 暗啲 再暗 校暗 校暗啲 弄暗 | dim, dimmer, darken
down        | brightness | |  | darker, less light
up          | temperature | | 调热 调暖 热一点 暖一点 暖和一点 升温 加热 暖啲 热啲 再热 再暖 暖和点 暖点 校暖 |
up          | temperature | |  | warmer, hotter, warm up, heat up
down        | temperature | | 调冷 调凉 冷一点 凉一点 凉快一点 降温 制冷一点 冷啲 冻啲 凉啲 再冷 再凉 凉快点 |
down        | temperature | | 冷点 凉点 校冻 校冻啲 冷一些 凉一些 | cooler, colder, cool down
up          | volume | | 大声 大声一点 大声点 响一点 大声啲 大点声 声音大点 响点 大声些 校大声 校大声啲 | louder
down        | volume | | 小声 小声一点 小声点 轻一点 细声 细声啲 小点声 轻点 小声些 校细声 校细声啲 声音小点 |
down        | volume | |  | quieter, softer
up          | | | 再高 再大 再强 |
down        | | | 再低 再小 再弱 |
up          | speed | | 加速 快一点 转快一点 快啲 转快点 | faster, speed up
down        | speed | | 减速 慢一点 转慢一点 慢啲 转慢点 | slower, slow, slow down
up          | | | 调高 调大 升高 提高 增加 增大 加大 开大 开大点 开大一点 调高点 调大点 调高一点 调大一点 调强 |
up          | | | 校高 校大 校高啲 校大啲 高啲 大啲 大点 高点 加 升 高些 大些 |
up          | | | 高一点 大一点 上调 | increase, raise, boost, turn up, lift
down        | | | 调低 调小 降低 减小 减少 关小 关小点 关小一点 调低点 调小点 调低一点 调小一点 调弱 低一点 |
down        | | | 校低 校细 校低啲 校细啲 低啲 细啲 小点 低点 减 降 低些 小些 |
down        | | | 小一点 下调 | decrease, lower, reduce, turn down, drop
set         | | | 调到 调至 调成 调为 设为 设成 设置 设定 设到 设置为 设置成 设置到 设定为 设定成 设定到 调整 |
set         | | | 调整为 调整到 调整成 调节 调节到 调节为 调节成 改成 改为 换成 变成 变为 切到 切换到 切换成 |
set         | | | 切换为 开到 关到 定到 定为 校到 校去 校至 转做 转成 转为 换做 较到 校 较 校做 较去 设做 调去 设 |
set         | | | 升到 降到 升高到 降低到 提高到 增加到 减少到 调高到 调低到 调大到 |
set         | | | 调小到 调亮到 调暗到 拉到 打到 转到 调 | set, change, adjust, make, dim to, brighten to
pause       | | media_player | 暂停 停一停 停一停先 | pause
play        | | media_player | 播放 放首 放一首 播 播一首 放 来首 来一首 播首 想听 要听 我想听 我要听 听歌 |
play        | | media_player | 放点 播点 点播 | play, playing, put on some
resume      | | media_player | 继续 恢复 继续播放 恢复播放 继续播 继续放 接着放 接着播 | resume, unpause, continue
stop        | | | 停止 停下 停下来 停 停一下 终止 中止 取消 | stop, halt, cancel
start       | | | 开始 运行 运转 执行 | start, begin, run, launch
next        | | media_player | 下一首 下一曲 下一个 下一台 下一集 切歌 换一首 换台 下首 下一首歌 跳过 换首歌 |
next        | | media_player | 下一个节目 下个节目 换个台 转台 下个台 下一个频道 | next, skip, next song, next track
next        | | media_player | | play the next, play the next song, play the next track, play next, play the next one
next        | | media_player | | skip to, skip to next, skip this, skip the, next item
previous    | | media_player | 上一首 上一曲 上一个 上一台 上一集 上首 上一首歌 上一个节目 上个台 上一个频道 |
previous    | | media_player | | play the previous, play the previous song, play the last song again
previous    | | media_player | | previous, previous song, previous track, go back, replay, last song, last track
mute        | | media_player | 静音 消音 闭嘴吧 | mute, silence
unmute      | | media_player | 取消静音 解除静音 | unmute
toggle      | | | 切换 翻转 | toggle
clean       | | vacuum | 打扫 清扫 清洁 扫地 拖地 吸尘 扫 扫一扫 扫个地 扫下 拖个地 去扫 去打扫 | clean, cleaning
clean       | | vacuum | 打扫卫生 打扫一下卫生 搞卫生 搞下卫生 打扫房间 |
clean       | | vacuum | | sweep, mop, vacuum, hoover
mow         | | lawn_mower | 割草 剪草 除草 锄草 割个草 | mow, mowing, mow the lawn, cut the grass, mow the grass
dock        | | | 回充 返回充电 回去充电 回充电座 回基站 返回基站 返回到基站 回家充电 回到基站 回座 返回充电座 |
dock        | | | 返去充电 返充电座 回充电桩 返去叉电 | dock
dock        | | | | return to base, go home, return home, go charge, return to dock, back to base, to base
dock        | | | | back to its dock, back to the dock, home to charge, to its base, to dock
arm         | | | 布防 设防 | arm
disarm      | | | 撤防 解除 解除警报 解除布防 | disarm
water       | | | 浇水 浇点水 浇浇水 浇个水 浇花 浇浇花 灌溉 | water the plants, water the garden, water the lawn
water       | | | | water the flowers, water my plants, water the grass, irrigate
on start    | | oven | 预热 | preheat, pre heat
on start    | | kettle | 烧水 烧壶水 烧点水 煲水 | boil water, boil some water, boil
on start    | | rice_cooker | 煮饭 煮个饭 煲饭 | cook rice, cook some rice
on start    | | coffee_machine | 煮咖啡 冲咖啡 泡咖啡 来杯咖啡 | make coffee, make me a coffee, make a coffee
on start    | | coffee_machine | | make me coffee, brew coffee, make some coffee, make me some coffee
on start    | | coffee_machine | | brew a coffee
on start    | | washer | 洗衣服 洗个衣服 | wash the clothes, do the laundry
on start    | | dishwasher | 洗碗 洗个碗 | wash the dishes, do the dishes
on          | | light | 照亮 | illuminate, light up, let there be, let there be light, give me some light
on          | | light | | gimme some light, give me light, have some light, some light, need light
query       | | | 查询 查看 查一下 查 看看 看一下 看下 读取 获取 检查 显示 汇报 告诉我 | query, check, read, show, get
query       | | | | status, report, tell me, state of, value of
query       | temperature | | 多少度 几度 几多度 多热 多冷 | how hot, how warm, how cold
query       | temperature | | 热不热 冷不冷 冻唔冻 热唔热 暖不暖 |
query       | | | 亮不亮 着唔着 |
query       | brightness | | 多亮 | how bright
query       | volume | | 多大声 | how loud
query       | humidity | | 多湿 | how humid
"""

ACTIONS: dict[str, Action] = {}
"""Every verb by its comparable form."""

for _concepts, _property, _type, *_languages in rows(_VERBS):
    _action = Action(frozenset(_concepts.split()), _property or None, _type or None)
    ACTIONS.update(dict.fromkeys(words(*_languages), _action))

CARRIERS = frozenset(
    {"turn", "switch", "put", "flip", "get", "power", "bring", "shut", "keep", "leave", "have", "want", "need", "like"}
    | {"roll", "pull", "crank", "knock", "bump", "nudge"}
)
"""English verbs that mean nothing until their particle comes: turn … off."""

PARTICLES: dict[str, frozenset[str]] = {
    "on": frozenset({"on"}),
    "off": frozenset({"off"}),
    "out": frozenset({"off"}),
    "up": frozenset({"up", "open"}),
    "down": frozenset({"down", "close"}),
}

POSITIVE = frozenset(
    {"on", "open", "up", "unlock", "play", "resume", "start", "unmute", "clean", "mow", "water", "arm"}
)
NEGATIVE = frozenset({"off", "close", "down", "lock", "pause", "stop", "mute", "dock", "disarm"})

ACCEPTS: dict[str, frozenset[str]] = {
    "on": frozenset({"on", "start", "clean", "arm", "mow"}),
    "off": frozenset({"off", "stop", "dock", "disarm"}),
    "open": frozenset({"open", "unlock"}),
    "close": frozenset({"close", "lock"}),
    "start": frozenset({"start", "on", "clean", "play", "mow", "arm"}),
    "stop": frozenset({"stop", "off", "pause"}),
    "clean": frozenset({"clean", "start", "on"}),
    "mow": frozenset({"mow", "start", "on"}),
    "water": frozenset({"water", "open", "start", "on"}),
    "play": frozenset({"play", "resume"}),
    "resume": frozenset({"resume", "play", "start"}),
}
"""For an action, the concepts of commands that do it, an action missing here accepts itself."""

CANONICAL: dict[str, tuple[str, str]] = {
    "on": ("打开", "turn on"), "open": ("打开", "open"), "off": ("关闭", "turn off"),
    "close": ("关闭", "close"), "lock": ("上锁", "lock"), "unlock": ("解锁", "unlock"),
    "up": ("调高", "turn up"), "down": ("调低", "turn down"), "set": ("设置", "set"),
    "pause": ("暂停", "pause"), "play": ("播放", "play"), "resume": ("继续", "resume"),
    "stop": ("停止", "stop"), "start": ("启动", "start"), "next": ("下一个", "next"),
    "previous": ("上一个", "previous"), "mute": ("静音", "mute"), "unmute": ("取消静音", "unmute"),
    "toggle": ("切换", "toggle"), "clean": ("打扫", "clean"), "mow": ("割草", "mow"), "water": ("浇水", "irrigate"),
    "dock": ("回充", "return to base"),
    "arm": ("布防", "arm"), "disarm": ("撤防", "disarm"), "query": ("查询", "query"),
}  # fmt: skip
"""How a concept is said in Chinese and English."""

SPECIAL = {
    ("up", "brightness"): ("调亮", "brighten"),
    ("down", "brightness"): ("调暗", "dim"),
    ("play", "title"): ("播放指定内容", "play media content"),
    ("clean", "area"): ("清扫指定区域", "clean the cleaning area"),
}


def canonical(concepts: frozenset[str], property_words: tuple[str, str] | None, name: str | None, chinese: bool) -> str:
    """The verb phrase of a meaning: 打开, turn on, 设置亮度, set brightness."""
    first = next((concept for concept in CANONICAL if concept in concepts), None)
    if first is None:
        return ""
    special = SPECIAL.get((first, name or ""))
    if special:
        return special[0 if chinese else 1]
    verb = CANONICAL[first][0 if chinese else 1]
    if property_words is None or first not in ("up", "down", "set", "query"):
        return verb
    return f"{verb}{property_words[0]}" if chinese else f"{verb} {property_words[1]}"


def accepted(concepts: frozenset[str]) -> frozenset[str]:
    """The concepts of commands that do what this action asks."""
    found = set(concepts)
    for concept in concepts:
        found |= ACCEPTS.get(concept, frozenset())
    return frozenset(found)


def opposed(action: frozenset[str], command: frozenset[str]) -> bool:
    """Whether the command goes the other way: on for off, up for down, lock for unlock."""
    forwards, backwards = bool(action & POSITIVE), bool(action & NEGATIVE)
    if forwards == backwards:
        return False
    return (
        not command & POSITIVE
        if forwards and command & NEGATIVE
        else bool(backwards and command & POSITIVE and not command & NEGATIVE)
    )
