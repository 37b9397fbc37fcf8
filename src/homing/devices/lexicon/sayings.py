"""Turns of phrase in the plain words that the parser reads, and complaints with what would help."""

from __future__ import annotations

import re

from homing.devices.lexicon.words import TABLES

_MUCH = "太|好|有点|有点儿|有些|真|很|非常|够|忒|怪|挺|咁|几|好似|特别|实在|越来越|这么|那么|超"


def _patterns() -> list[tuple[re.Pattern[str], tuple[str, str]]]:
    found = []
    for name, direction, chinese, english in TABLES["complaints"]:
        said = "|".join(chinese.split())
        spoken = "|".join(word.strip() for word in english.split(","))
        whole = "|".join(word for word in chinese.split() if len(word) > 2) or "(?!)"
        pattern = (
            rf"(?:{_MUCH})(?:{said})(?!一点|点|啲|些|气|水|的[灯光])|我(?:{said})(?:了|啊|呀|$)|(?:{said})(?:死了?|坏了|爆)|{whole}"
            rf"|\b(?:too|so|very|really|a bit|a little|bit|pretty|quite|rather|is|am|are|was|feels?|getting|kind of) "
            rf"(?:{spoken})\b"
        )
        found.append((re.compile(pattern), (name, direction)))
    return found


COMPLAINT_END = re.compile(
    rf"(?:{_MUCH})(?:[^,。!?的]{{1,3}})(?:了|啦|啊|呀|喔|哦)(?=[^,。!?了啦啊呀吗吧的]{{2}})"
    r"|\b(?:too|so|very|really) \w+(?: in (?:here|the \w+(?: room)?))?(?= (?:so )?(?:please |can you |could you )?"
    r"(?:turn|switch|open|close|dim|set|shut|put|make|lower|raise)\b)"
)
"""Where a complaint ends and something else begins without a comma: 太暗了开灯."""
COMPLAINTS = _patterns()
"""How a complaint sounds, with the property it is about and the direction that helps."""

_RUNNING = {
    "烧": "烧水", "放": "播放", "播": "播放", "唱": "播放", "扫": "扫地", "拖": "扫地", "煮": "煮饭",
    "浇": "浇水", "吹": "", "转": "", "洗": "", "烤": "",
}  # fmt: skip
_IDIOMS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"\b(?:send|return|take|bring|get) (.+?) (?:back )?"
            r"(?:home|to (?:the |its |his |her )?(?:base|dock|station|charger)|to charge)\b"
        ),
        r"dock \1",
    ),
    (re.compile(r"(?:让|叫|请)(.{1,8}?)(?:回家|回去|返屋企)[吧啊呀啦]?$"), r"\1回充"),
    (re.compile(r"(\d+(?:\.\d+)? ?(?:%|percent)) (?:open|opened|up)\b"), r"\1"),
    (re.compile(r"\bput (.+?) (?:in|into|on) (\w+) mode\b"), r"set \1 to \2 mode"),
    (
        re.compile(r"\bhow (?:long|much (?:longer|time))\b(?: (?:is|are|does|do|will|until|till|left|to go|take)\b)*"),
        "status of",
    ),
    (re.compile(r"(?:还|仲)[要有剩]多久.*$"), "的状态是什么"),
    (re.compile(r"\ba couple(?: of)? (?=degrees|percent)"), "2 "),
    (re.compile(r"\b(up|down|by) two\b(?! (?:degrees|percent|light|lamp))"), r"\1 2"),
    (re.compile(r"\b(up|down|by) three\b(?! (?:degrees|percent|light|lamp))"), r"\1 3"),
    (re.compile(r"减半|减一半"), "减百分之五十"),
    (re.compile(r"\bhalve (.+)$"), r"reduce \1 by 50 percent"),
    (re.compile(r"给.{1,4}浇(?:点|些|一下|浇)?水?"), "浇水"),
    (re.compile(r"\bsend (.+?) back$"), r"dock \1"),
    (re.compile(r"^why do not (?:you|we) "), "please "),
    (
        re.compile(
            r"\b(?:leave|keep) (.+?) on(?: and| but|,) (?:turn|switch) "
            r"(?:off (?:the rest|everything else|(?:all )?the others)|(?:the rest|everything else|the others) off)\b"
        ),
        r"leave only \1",
    ),
    (re.compile(r"\bdown low\b"), "down"),
    (re.compile(r"\ball the way up\b"), "to max"),
    (re.compile(r"\ball the way down\b"), "to min"),
    (re.compile(r" all the way\b"), ""),
    (re.compile(r"(成)亮"), r"\1"),
    (re.compile(r"(?:想|要)看(?:一下|一会儿?|会儿?)?电视(?!剧|机)"), "要打开电视"),
    (re.compile("廿"), "二十"),
    (re.compile("卅"), "三十"),
)
_NO_LONGER = re.compile(rf"(?<!请)别再?([{''.join(_RUNNING)}])(?:水|地|歌|饭|衣服|音乐|碗|花)?了[吧啊呀啦]?$")


def plainly(form: str) -> str:
    """The sentence without its turns of phrase; 别烧了, at its end, tells to stop what runs."""
    for pattern, plain in _IDIOMS:
        form = pattern.sub(plain, form)
    return _NO_LONGER.sub(lambda found: "停止" + _RUNNING[found[1]], form)
