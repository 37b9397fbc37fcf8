"""From the object tokens of a clause to phrases: which devices, where, how many."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from homing.devices.lexer import Kind, Token
from homing.devices.lexicon.types import TypeWord
from homing.devices.query import Quantifier
from homing.devices.spoken import spoken

WHERE = frozenset({"in", "at", "inside", "within", "on", "里", "里面", "内", "中"})


CHOICE = frozenset({"or", "或", "或者", "还是"})


@dataclass
class Phrase:
    """One thing a clause speaks of."""

    places: list[str] = field(default_factory=list)
    place_name: str | None = None
    name: str | None = None
    type: TypeWord | None = None
    type_text: str | None = None
    unknown: str | None = None
    feature: str | None = None
    any_device: str | None = None
    quantifier: Quantifier | None = None
    reference: bool = False
    here: bool = False
    whole: bool = False
    rest: bool = False
    also: bool = False
    definite: bool = False

    @property
    def headed(self) -> bool:
        """Whether it says which devices, and not only where."""
        return bool(self.name or self.type or self.unknown or self.any_device or self.reference)

    @property
    def empty(self) -> bool:
        return not (self.headed or self.places or self.here or self.whole or self.quantifier or self.rest)


def phrases(tokens: list[Token], form: str) -> list[Phrase]:
    """The phrases of a clause; lists of rooms belong to one phrase, lists of devices are one phrase each."""
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if token.is_a(Kind.CONJUNCTION):
            groups.append([])
        else:
            if token.is_a(Kind.NAME) and any(t.is_a(Kind.NAME) and not t.is_a(Kind.PLACE) for t in groups[-1]):
                groups.append([])
            groups[-1].append(token)
    made = [phrase for phrase in (_phrase(group, form) for group in groups) if not phrase.empty]
    if any(token.text in CHOICE for token in tokens) and made:
        # 台灯或者吊灯: which of them, only the speaker knows.
        return [Phrase(unknown=form[tokens[0].start : tokens[-1].end])]
    return _share(_merge_places(made))


def _phrase(tokens: list[Token], form: str) -> Phrase:
    phrase = Phrase()
    stretch: list[Token] = []
    for i, token in enumerate(tokens):
        if token.is_a(Kind.UNKNOWN, Kind.COUNT) and not token.is_a(Kind.REST):
            if _is_place(tokens, i):
                phrase.places.append(token.text)
            else:
                stretch.append(token)
        elif token.is_a(Kind.PLACE):
            phrase.places.append(token.place or token.text)
            phrase.place_name = phrase.place_name or token.name
        elif token.is_a(Kind.NAME, Kind.TYPE):
            _take_head(phrase, token, stretch)
        else:
            _take_word(phrase, token)
    phrase.unknown = _unknown_text(stretch, form)
    if phrase.unknown and phrase.name and spoken(phrase.name) in phrase.unknown and phrase.unknown.isascii():
        # English words stand apart: "bedroom curtains halfway" is the curtains, and a word about them.
        phrase.unknown = phrase.unknown.replace(spoken(phrase.name), " ").strip()
    if phrase.unknown and phrase.name and spoken(phrase.name) not in phrase.unknown:
        # 客厅空调的童锁: a known device, and something about it that only its commands may know.
        phrase.feature, phrase.unknown, phrase.type, phrase.type_text = phrase.unknown, None, None, None
    return phrase


def _take_head(phrase: Phrase, token: Token, stretch: list[Token]) -> None:
    stretch.append(token)
    if token.is_a(Kind.NAME):
        phrase.name = token.name
    # 在电视上播放音乐: the word that says more wins over the one that only names the kind.
    if token.type is not None and not (phrase.type and phrase.type.narrow and token.type.types <= phrase.type.types):
        phrase.type, phrase.type_text = token.type, token.text


def _take_word(phrase: Phrase, token: Token) -> None:
    if token.is_a(Kind.ANY_DEVICE):
        phrase.any_device = token.text
        if token.text == "everything":
            phrase.quantifier = "all"
    if token.is_a(Kind.REST):
        phrase.rest = True
    elif token.is_a(Kind.ALL):
        phrase.quantifier = "all"
    elif token.is_a(Kind.ANY):
        phrase.quantifier = phrase.quantifier or "any"
    if token.is_a(Kind.REFERENCE):
        phrase.reference = True
    phrase.here |= token.is_a(Kind.HERE)
    phrase.whole |= token.is_a(Kind.WHOLE)
    phrase.also |= token.is_a(Kind.ALSO)


def _is_place(tokens: list[Token], i: int) -> bool:
    """An unknown word where a place must stand: in the X, X里的灯."""
    after = tokens[i + 1] if i + 1 < len(tokens) else None
    if after is not None and after.text in ("里", "里面", "内") and not tokens[i].text.isascii():
        return True
    before = tokens[i - 1] if i > 0 else None
    return (
        before is not None
        and before.text in WHERE
        and before.text.isascii()
        and any(token.is_a(Kind.TYPE, Kind.NAME, Kind.ANY_DEVICE) for token in tokens[:i])
    )


def _unknown_text(stretch: list[Token], form: str) -> str | None:
    """The words around the unknown ones that touch them: 台灯 and desk lamp, not the bare 台 and desk."""
    marks = [i for i, token in enumerate(stretch) if token.is_a(Kind.UNKNOWN, Kind.COUNT)]
    if not marks:
        return None
    first, last = marks[0], marks[-1]
    while last + 1 < len(stretch) and not form[stretch[last].end : stretch[last + 1].start].strip():
        last += 1
    while first > 0 and not form[stretch[first - 1].end : stretch[first].start].strip():
        first -= 1
    return form[stretch[first].start : stretch[last].end]


def _merge_places(made: list[Phrase]) -> list[Phrase]:
    """卧室和客厅的灯; lights in the kitchen and the hall: bare places join the phrase that says what is there."""
    merged: list[Phrase] = []
    waiting: list[str] = []
    quantifier: Quantifier | None = None
    for phrase in made:
        if phrase.headed:
            phrase.places = [*waiting, *phrase.places]
            phrase.quantifier = phrase.quantifier or quantifier
            waiting = []
            merged.append(phrase)
        elif phrase.places and merged:
            merged[-1].places += phrase.places
        elif phrase.places and phrase is not made[-1]:
            waiting += phrase.places
            quantifier = quantifier or phrase.quantifier
        else:
            phrase.places = [*waiting, *phrase.places]
            waiting = []
            merged.append(phrase)
    return merged


def _share(made: list[Phrase]) -> list[Phrase]:
    """卧室的灯和空调: what is said once at the front holds for the list."""
    for before, phrase in pairwise(made):
        if (
            not phrase.places
            and (phrase.type or not phrase.name)
            and not phrase.whole
            and not phrase.here
            and not phrase.reference
        ):
            phrase.places = list(before.places)
            phrase.here = before.here
            phrase.whole = before.whole
        if phrase.quantifier is None:
            phrase.quantifier = before.quantifier
    if made and made[-1].quantifier == "all":
        # 灯和空调都关掉: 都 stands behind the list and holds for all of it.
        for phrase in made:
            phrase.quantifier = phrase.quantifier or "all"
    return made
