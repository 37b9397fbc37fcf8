"""Short answers to a question that was asked: yes, the second one, both, the left one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from homing.devices.lexicon.values import number_of
from homing.devices.vocabulary import spoken

_YES = re.compile(
    r"(?:好|好的|好啊|好呀|好吧|是|是的|是啊|对|对的|对啊|嗯|嗯嗯|行|行吧|可以|确认|确定|没错|要|要的|当然|系|系呀|得|得啦|好嘅|"
    r"yes|yeah|yep|yup|sure|ok|okay|please do|do it|go ahead|confirm|confirmed|of course|right|correct|absolutely|"
    r"that is right|please|go for it|affirmative)(?:[吧啊呀的啦,。! ]|please|do it|thanks|thank you)*$"
)
_LEADING_YES = re.compile(r"^(?:好的?|是的?|对的?|嗯|行|可以|确认|系|yes|yeah|yep|sure|ok|okay)[,。! ]+")
_ORDINALS = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
_ORDINAL = re.compile(
    rf"(?:就|选|要|我要|the|number)? ?(?:第(?P<zh>[一二三四五六七八九十\d]+)|(?P<en>{_ORDINALS})|(?P<last>最后一?|last)"
    r"|(?P<number>\d|one|two|three|four|five|six))(?:号|个|盏|台|只|扇|把|部| one)?(?:吧|的|啊|please|啦)?"
)
_ALL = re.compile(
    r"(?:(?:[两三四五六几\d二]个|全部|全|所有|统统|通通)?(?:都|全)(?:要|是|得|可以|行)?|两个|两者|所有的?|全部|"
    r"both(?: of them)?|"
    r"all(?: of them)?|all \w+|everything|every one|每个|晒)(?:吧|啊|的|啦|please| please)*"
)
_POINTERS = re.compile(
    r"^the | one$| ones$|^那|^就|^要|^我要|^选|^嗰|那?[个盏台只扇]$|嗰[个盏]$"
    r"|边那?个?$|侧那?个?$|面那?个?$|的$|嘅$|边$|[吧啊呀]$"
)


def says_yes(text: str) -> bool:
    """Whether it agrees, and says nothing else."""
    return _YES.fullmatch(spoken(text)) is not None


def without_yes(text: str) -> str:
    """What is said after a yes: 对，打开吧."""
    return _LEADING_YES.sub("", spoken(text))


def chosen_from(text: str, names: Sequence[str]) -> list[int]:
    """The positions of the names that a reply chooses: by number, all of them, or by a part that only some have."""
    form = spoken(text).strip("。!, ")
    if _ALL.fullmatch(form):
        return list(range(len(names)))
    ordinal = _ORDINAL.fullmatch(form)
    if ordinal is not None and not (ordinal["number"] and len(form) > 12):
        position = _position(ordinal, len(names))
        return [position] if 0 <= position < len(names) else []
    part = form
    while (shorter := _POINTERS.sub("", part).strip()) != part and shorter:
        part = shorter
    forms = [spoken(name) for name in names]
    exact = [at for at, name in enumerate(forms) if name == part]
    return exact or [at for at, name in enumerate(forms) if part and part in name]


def _position(found: re.Match[str], count: int) -> int:
    if found["last"]:
        return count - 1
    if found["en"]:
        return _ORDINALS.split("|").index(found["en"])
    return int(number_of(found["zh"] or found["number"]) or 0) - 1
