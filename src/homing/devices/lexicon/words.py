"""Everything that is neither verb, type, room nor value: quantity, exclusion, reference, politeness, time, joints."""

from __future__ import annotations

from collections.abc import Iterator


def words(chinese: str, english: str) -> list[str]:
    """The words of two lists: Chinese ones between spaces, English ones, which may hold spaces, between commas."""
    return [*chinese.split(), *(word.strip() for word in english.split(",") if word.strip())]


def rows(table: str) -> Iterator[list[str]]:
    """The rows of a table, cut into their cells at the bars."""
    for line in table.strip().splitlines():
        yield [cell.strip() for cell in line.split("|")]


def _split(chinese: str, english: str) -> frozenset[str]:
    return frozenset(words(chinese, english))


ALL = _split(
    "所有 全部 都 全 每个 每一个 每盏 每台 所有的 全部的 统统 通通 一切 各个 全都 每一盏 每扇 整个 整间 晒 所有嘅 "
    "全数 都要 一起",
    "all, every, each, every single, each and every, all of, all the, both, entire, whole",
)
ANY = _split(
    "一个 任意 任意一个 随便一个 某个 任何一个 一盏 一台 一扇 随便 任何",
    "any, a, an, one of, some, any one of, any of, either",
)
SOME_NUMBER = _split(
    "两个 两盏 两台 三个 三盏 几个 几盏 另一个 另外 其中 旁边 隔壁 对面 附近 或 或者 还是",
    "two, three, several, other, another, few, half of, next to, beside, near, behind, opposite, or, either of",
)
"""Words that leave open which devices are meant."""
REST = _split(
    "其他 其它 其余 别的 剩下 剩下的 其他的 其它的 其余的 其他嘅 另外的 另外嘅 其余嘅",
    "other, others, the rest, the rest of, remaining, the other",
)
"""What is left after an exclusion; without one it says nothing about which."""

EXCEPT_OPEN = _split(
    "除了 除 除掉 除开 除咗 别动 不要动 别管 不用管 不包括 不含 保留 留着 别碰 不要碰 只留 只剩 只保留 只留下 "
    "净系留返 净系留 留返 "
    "只要留 就留 仅保留 仅留",
    "except, except for, but not, other than, apart from, excluding, besides, aside from, all but, but leave, leave, "
    "but keep, and keep, keep, and leave, everything but, without, not including, and not, "
    "leave only, only leave, keep only, only keep, leave just, just leave, keep just, just keep",
)
EXCEPT_CLOSE = _split("以外 之外 外 除外 以外的 之外的", "excepted, excluded, alone, untouched")

REFERENCE = _split(
    "那个 它 它们 这个 刚才那个 刚才的 刚才 刚刚那个 上一个设备 那盏 这盏 那台 这台 那些 这些 那 这 该 嗰个 呢个 "
    "嗰盏 呢盏",
    "that one, that, it, them, this one, this, those, these, the last one, the same one, the previous one, the same",
)
HERE = _split(
    "这里 这儿 这边 这个房间 这间 这屋 这屋里 本房间 这间房 屋里 房间里 房间 这房间 呢度 呢边 呢间房 我这 我这里 "
    "我这儿 这块儿",
    "here, in here, this room, this space, the room, my room, our room, this area, over here, in this room, room",
)
WHOLE = _split(
    "室内 屋内 "
    "家里 全家 全屋 整个家 屋子里 家中 整屋 整个房子 所有房间 每个房间 各个房间 全部房间 家里所有 到处 家 屋企 "
    "成间屋 全宅 整栋 "
    "哪个房间 哪间房 哪些房间",
    "everywhere, the house, the home, my home, our home, my house, our house, the entire home, the entire house, "
    "the whole house, the whole home, the apartment, the flat, every room, each room, all rooms, all the rooms, "
    "all my rooms, all our rooms, every area, all areas, each area, all over, throughout, across, house, home, "
    "apartment, entire home, entire house, whole house, whole home, all the areas, flat, whole place, the place, "
    "which room, which rooms",
)
ALSO = _split("也 还有 以及 埋", "too, as well, also")

NEGATION = _split(
    "别 不要 不用 不许 先别 勿 禁止 不准 不必 无需 别再 不能 不 别给我 千万别 不想 不需要 不是 唔好 唔使 唔准 唔要 "
    "咪 唔 甭 莫 没让 没叫 "
    "没要 没 未 冇 请勿 切勿 先不要 不可以 别去 不该 不应该 不会 没有",
    "do not, never, no need to, please do not, does not, not, should not, must not, no, will not, can not, "
    "no need, need not, would not, could not, have not, has not, was not, were not, is not, are not, did not",
)

CONJUNCTION = _split("和 与 跟 及 还有 以及 、 同 同埋 跟着", "and, &, plus, as well as, along with")
SEPARATOR = _split(
    ", ; 。 ! ? 并 并且 然后 最后 随后 接着 再 同时 顺便 另外 之后 但 但是 不过 而且 此外 只是 同时也",
    "then, and then, and also, while, but, after that, afterwards",
)

OBJECT_MARK = _split("把 将 给 让 使 对 叫 俾", "")
"""What stands before an object that comes first: 把灯关掉."""
OF = _split(
    "的 里 里面 内 中 上 上面 那边 这 的那个 边 处 间 嘅 喺 入面 度 啲 个 盏 部 首 在 用",
    "of, in, at, inside, within, from, for, on, into, by",
)
TO = _split("到 为 成 至 在 是 去 做", "to, at, =, into")
BY = _split("了 个", "by")

FILLER = _split(
    "请 请你 帮我 帮忙 麻烦 麻烦你 劳驾 给我 帮 替我 一下 一下子 吧 啊 呀 哦 嘛 了 呢 哈 喔 啦 谢谢 谢谢你 多谢 现在 "
    "立刻 马上 赶紧 快 我想 我要 我想要 想要 我 你 我们 需要 我需要 咱们 咱 我家 嘿 喂 好的 那么 先 起来 掉 一点 一些 "
    "点儿 下 下来 着 当前 目前 此刻 小助手 拜托 可以 能 能不能 可不可以 可否 能否 可以帮我 行不行 好吗 好不好 行吗 "
    "可以吗 好么 一起 特别 非常 很 有点 直接 快点 我的 我们的 是 想 就 又 有劳 帮个忙 要 帮帮忙 确保 保证 务必 记得 "
    "你好 您好 您 您的 去 来 只 仅 请问 弄 搞 还 一键 唔该 唔该晒 帮手 咗 佢 返 呗 咯 喽 嘞 哇 呐 啫 喇 㗎 啩 咩 "
    "先 啲 一阵 而家 即刻 可唔可以 "
    "得唔得 好唔好 拜托你 来个 来一个 来点 个 自己 也 给 帮帮我 同学 你帮我 你去 你来 你给我 统统 太 不错 好 嘛 "
    "哎 诶 欸 那 有 少少 嚟听 来听 嚟听下 嚟听吓 来听听 听听 嚟 睇 得闲 有空 喇喇 顺手",
    "the, please, tell, ask, to, my, our, your, for me, can you, could you, would you, will you, i want, i want to, "
    "i would like, i would like to, i need, i need to, i, you, me, hey, hi, ok, okay, now, right now, immediately, "
    "just, kindly, thanks, thank you, make sure, ensure, let, is, are, be, to be, want to, we, us, so, really, "
    "go ahead and, would you mind, want, need, like, um, uh, well, that is, currently, quickly, a bit, a little, "
    "a touch, a notch, a tad, "
    "a little bit, bit, slightly, some more, more, please can you, please could you, hello, want you to, again, "
    "there, will, only, anything, back, nothing else, and nothing else, maybe, actually, sorry, wait, i am, "
    "i will, ones, one, "
    "would it be possible to, would like, would, could, can, mind, damn, bloody, stupid, freaking, percent more, "
    "somewhat, go, down here, up here, quick, let us, in, and please, it is, the one, the ones",
)
_HOW_MANY = frozenset(
    ask + unit for ask in ("几", "有几", "多少", "有多少", "哪", "哪一", "哪几") for unit in "个盏台扇只间部"
)
QUESTION = _HOW_MANY | _split(
    "吗 么 是不是 是否 有没有 哪个 哪些 哪一个 哪盏 哪一盏 哪扇 哪一扇 哪台 几个 有几个 多少 有多少 什么 怎么样 怎样 "
    "如何 有任何 没 没有 多少盏 多少扇 不 开着不 几盏 哪里 啥 谁 哪 在哪 在哪里 未 边个 边盏 几多 乜 点解 系咪 "
    "有冇 为什么 怎么 干嘛 为何 几点 几点了 几点钟 几号",
    "what is, what are, what, is it, are they, which, how many, how much, is, are, is there, are there, does, do, "
    "did, tell me if, tell me whether, whether, if there are, do i have, was, were, has, have, where, where is, "
    "who, why, "
    "finish, finished, done, ready, "
    "what time, the time, what day, how are you, weather",
)
STATES: dict[str, str] = {
    word: state
    for state, said in {
        "on": _split(
            "开着 开着的 打开着 亮着 亮着的 打开的 开了 打开了 开紧 着紧 亮了 着咗 开住 开启的 开启着 启动了 "
            "开启了 有开 全开着 都开着",
            "turned on, switched on",
        ),
        "off": _split(
            "关着 关着的 关上的 关闭的 关好了 灭着 熄紧 关住 灭了 关掉的 闩住 关上了 关闭了 熄了 全关着 都关着",
            "turned off, switched off",
        ),
        "closed": _split("", "closed, shut"),
        "open": _split("", "opened"),
        "locked": _split("锁着 锁着的 锁好了 上锁了 锁住的 上锁的 锁上了 锁住了 锁紧", "locked"),
        "unlocked": _split("没锁 解锁了", "unlocked"),
    }.items()
    for word in said
}
"""How a device is, not what it should do; outside a question the device is told to become so."""
STATE_CONCEPTS: dict[str, frozenset[str]] = {
    "on": frozenset({"on", "open"}),
    "off": frozenset({"off", "close"}),
    "closed": frozenset({"close"}),
    "open": frozenset({"open"}),
    "locked": frozenset({"lock"}),
    "unlocked": frozenset({"unlock"}),
}

ONLY = _split(
    "只留 只剩 只保留 只留下 净系留返 净系留 留返 只要留 就留 仅保留 仅留",
    "leave only, only leave, keep only, only keep, leave just, just leave, keep just, just keep",
)
"""Exclusions that say what becomes of the rest: it goes off."""

MEDIA = _split(
    "电影 节目 剧 电视剧 曲子 片子 这首 这首歌",
    "movie, film, show, my show, the show, episode, podcast, album, playlist, my music",
)
"""What a player plays: "pause the movie" names no device."""
MORE = _split("再 再多 多", "more, further, another, percent more")
LITTLE = _split("一点 一些 点儿 少少", "a bit, a little, a little bit, bit, slightly, a touch, a notch, a tad")

CORRECTION = _split(
    "不 不对 不是 算了 等等 等一下 没事 错了 说错了 取消",
    "no, wait, never mind, nevermind, scratch that, cancel that, actually, sorry, forget it, hold on",
)
"""Said alone between two commas, these take back what came before."""

WHEN = _split(
    "明天 后天 今晚 明早 早上 晚上 中午 下午 凌晨 傍晚 如果 要是 假如 的时候 当 每天 每晚 每周 等会 等会儿 待会 "
    "等阵 一阵间 听日 琴日 寻日 今朝 听朝 "
    "待会儿 一会儿 一会后 稍后 过会儿 过一会 分钟后 小时后 秒后 之前 日落 日出 周末 时 昨天 等我 等到 等天黑 昨晚 "
    "的话 一到 只要一 提醒 提醒我 定时 除非 万一 一旦",
    "an hour, half an hour, a minute, a while, a few minutes, a few hours, tomorrow, tonight, later, when, whenever, "
    "if, unless, until, every day, every night, every morning, at noon, at midnight, sunset, sunrise, "
    "in the morning, remind me, remind, "
    "in the evening, yesterday, o'clock, am, pm, after sunset, once, before, after, next week, weekend, daily",
)
WHEN |= {
    event + mark
    for event in ("到家", "回家", "离家", "出门", "天黑", "天亮", "睡觉", "起床", "下班", "回来", "睡着")
    for mark in ("后", "以后", "之后", "时", "的时候", "就", "了就", "再", "前", "以前", "之前")
}
"""Another time, or a condition: what is said is not to be done now."""
TIME_UNITS = _split(
    "秒 秒钟 分 分钟 小时 个小时 钟头 点 点钟 点半 天 小时后 分钟后 秒后 秒钟后 个小时后 天后",
    "second, seconds, minute, minutes, hour, hours, day, days, am, pm, o clock, sec, min, mins",
)
