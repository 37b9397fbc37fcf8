"""The lexicon as it is written in `words.txt`: tables of words, Chinese and English, by the name of their section."""

from __future__ import annotations

from pathlib import Path


def _sections() -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for line in Path(__file__).with_name("words.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            rows = found[line[1 : line.index("]")]] = []
        elif line and not line.startswith("#"):
            rows.append([cell.strip() for cell in line.split("|")])
    return found


TABLES = _sections()
"""The rows of each section, cut into their cells."""
_MADE = {
    "question": [
        ask + unit for ask in ("几", "有几", "多少", "有多少", "哪", "哪一", "哪几") for unit in "个盏台扇只间部"
    ],
    "when": [
        event + mark
        for event in ("到家", "回家", "离家", "出门", "天黑", "天亮", "睡觉", "起床", "下班", "回来", "睡着")
        for mark in ("后", "以后", "之后", "时", "的时候", "就", "了就", "再", "前", "以前", "之前")
    ],
}
"""Words that are made of two parts, each with each."""


def words(chinese: str, english: str = "") -> list[str]:
    """The words of two cells: Chinese ones between spaces, English ones, which may hold spaces, between commas."""
    return [*chinese.split(), *(word.strip() for word in english.split(",") if word.strip())]


def said(name: str) -> frozenset[str]:
    """The words of a section that says nothing else about them."""
    return frozenset(word for row in TABLES[name] for word in words(*row)).union(_MADE.get(name, ()))


def by_word(name: str) -> dict[str, str]:
    """What each word of a section stands for: the first cell of its row."""
    return {word: value for value, *languages in TABLES[name] for word in words(*languages)}


STATES = by_word("states")
"""How a device is, by what is said."""
STATE_CONCEPTS: dict[str, frozenset[str]] = {
    "on": frozenset({"on", "open"}),
    "off": frozenset({"off", "close"}),
    "closed": frozenset({"close"}),
    "open": frozenset({"open"}),
    "locked": frozenset({"lock"}),
    "unlocked": frozenset({"unlock"}),
}
ONLY, MEDIA, MORE, LITTLE = said("only"), said("media"), said("more"), said("little")
TIME_UNITS = said("time units")
