"""What people complain about, and what would help: 太亮了 asks for less brightness."""

from __future__ import annotations

import re

from homing.devices.lexicon.words import rows

# property | direction that helps | Chinese words | English words
_COMPLAINTS = """
brightness | down | 亮 刺眼 晃眼 光 耀眼 | bright, glaring
brightness | up | 暗 黑 看不清 睇唔到 | dark, dim, gloomy
temperature | down | 热 闷 烫 闷热 热死 焗 | hot, warm, stuffy, boiling, sweltering, roasting, sweating
temperature | up | 冷 冻 凉 冻死 冷死 | cold, chilly, freezing, cool, frosty, shivering
volume | down | 吵 大声 响 嘈 嘈杂 吵死 | loud, noisy
volume | up | 小声 细声 听不见 听不清 | quiet
humidity | up | 干 干燥 | dry
humidity | down | 潮 潮湿 湿 | humid, damp, muggy
"""
_MUCH = "太|好|有点|有点儿|有些|真|很|非常|够|忒|怪|挺|咁|几|好似|特别|实在|越来越|这么|那么|超"


def _patterns() -> list[tuple[re.Pattern[str], tuple[str, str]]]:
    found = []
    for name, direction, chinese, english in rows(_COMPLAINTS):
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
