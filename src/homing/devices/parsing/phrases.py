"""From the object tokens of a clause to phrases: which devices, where, how many; and what a neighbour says instead."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from homing.devices.lexicon.actions import Action
from homing.devices.lexicon.things import TypeWord
from homing.devices.parsing.tokens import Kind, Token, lex_plain
from homing.devices.query import Mood, Quantifier, SpokenValue
from homing.devices.vocabulary import singular, spoken

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
    plural: bool = False

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
    ends_in_place = bool(tokens) and tokens[-1].is_a(Kind.PLACE) and tokens[-1].text.isascii()
    return _share(_merge_places(made), ends_in_place)


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
    called = spoken(phrase.name or "")
    if phrase.unknown and phrase.name and phrase.type_text and called in (phrase.type_text, singular(phrase.type_text)):
        # In "the countertop light" light is the kind, even where some device is called Light.
        phrase.name = None
    if phrase.unknown and phrase.name and spoken(phrase.name) in phrase.unknown and phrase.unknown.isascii():
        # English words stand apart: "bedroom curtains halfway" is the curtains, and a word about them.
        phrase.unknown = phrase.unknown.replace(spoken(phrase.name), " ").strip()
    if phrase.unknown and phrase.name and spoken(phrase.name) not in phrase.unknown:
        # 客厅空调的童锁: a known device, and something about it that only its commands may know.
        phrase.feature, phrase.unknown, phrase.type, phrase.type_text = phrase.unknown, None, None, None
    return phrase


def _take_head(phrase: Phrase, token: Token, stretch: list[Token]) -> None:
    stretch.append(token)
    phrase.plural |= token.plural
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


def _share(made: list[Phrase], ends_in_place: bool) -> list[Phrase]:
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
    if len(made) > 1 and made[-1].places and ends_in_place:
        # Turn off the fan and the lamp in the living room.
        for phrase in made[:-1]:
            if phrase.type and not phrase.name and not phrase.places and not phrase.whole and not phrase.here:
                phrase.places = list(made[-1].places)
    if made and made[-1].quantifier == "all":
        # 灯和空调都关掉: 都 stands behind the list and holds for all of it.
        for phrase in made:
            phrase.quantifier = phrase.quantifier or "all"
    return made


@dataclass
class SpokenCommand:
    """One command on the way to its QueryIRs."""

    action: Action | None
    property: str | None
    value: SpokenValue | None
    phrases: list[Phrase]
    excluded: list[Phrase]
    mood: Mood
    clear: bool
    only: bool
    english: bool


def carry_over(commands: list[SpokenCommand]) -> list[SpokenCommand]:
    """What one clause leaves out, its neighbour says: 打开空调，调到26度; 灯都关掉，别动卧室的."""
    commands = _without_small_talk(commands)
    kept: list[SpokenCommand] = []
    waiting: list[Phrase] = []
    for position, command in enumerate(commands):
        following = commands[position + 1] if position + 1 < len(commands) else None
        before = kept[-1] if kept else None
        if command.action is None and not command.phrases and command.excluded:
            if before is not None:
                before.excluded += command.excluded
            else:
                waiting += command.excluded
            continue
        if command.only and following is not None and any(phrase.rest for phrase in following.phrases):
            waiting += command.excluded
            following.only = True
            continue
        rest = following is not None and any(phrase.rest for phrase in following.phrases)
        if command.action is None and command.excluded and following is not None and rest:
            waiting += command.excluded
            if not any(phrase.headed for phrase in following.phrases):
                following.phrases = [replace(phrase, quantifier="all") for phrase in command.phrases]
            continue
        if command.mood == "negation" and not command.phrases and following is not None and following.mood == "command":
            continue
        if command.mood == "negation" and before is not None and _takes_back(command, before):
            before.excluded += command.phrases
            continue
        if command.mood == "negation" and following is not None and any(phrase.rest for phrase in following.phrases):
            waiting += command.phrases
            _inherit_types(following, command)
            continue
        if before is not None and _only_says_where(command, before):
            for phrase in before.phrases:
                phrase.places = [place for said in command.phrases for place in said.places]
            continue
        if command.action is None and command.value is None and before is not None and command.phrases:
            if _is_small_talk(command):
                continue
            command.action, command.property, command.value = before.action, before.property, before.value
        elif command.action is None and before is None and following is not None and not following.phrases:
            following.phrases = command.phrases
            following.property = following.property or command.property
            following.excluded += command.excluded
            continue
        if not command.phrases and before is not None and command.action is not None:
            command.phrases = [replace(phrase) for phrase in before.phrases]
        command.excluded += waiting
        waiting = []
        kept.append(command)
    for command in kept:
        _type_of_the_rest(command)
    return kept


def _without_small_talk(commands: list[SpokenCommand]) -> list[SpokenCommand]:
    """我想看电影，打开电视: what stands before the first command and speaks of nothing in the home says nothing."""
    first = next((i for i, command in enumerate(commands) if command.action is not None), None)
    if first is None:
        return commands
    return [command for i, command in enumerate(commands) if i >= first or not _is_small_talk(command)]


def _is_small_talk(command: SpokenCommand) -> bool:
    known = command.excluded or command.value or command.property
    return not known and all(
        replace(phrase, unknown=None, feature=None, type=None if _in_unknown(phrase) else phrase.type).empty
        for phrase in command.phrases
    )


def _in_unknown(phrase: Phrase) -> bool:
    """Whether the kind is only a part of a word that nobody knows: 出门 is no door."""
    return bool(phrase.unknown and phrase.type_text and phrase.type_text in phrase.unknown)


def _type_of_the_rest(command: SpokenCommand) -> None:
    """除了厨房的灯都打开: the kind that is excluded is the kind that is meant."""
    kinds = [(phrase.type, phrase.type_text) for phrase in command.excluded if phrase.type is not None]
    if not kinds and not any(phrase.places for phrase in command.excluded):
        kinds = [kind for phrase in command.excluded if (kind := kind_in(phrase.name))]
    if kinds and not any(phrase.headed for phrase in command.phrases):
        command.phrases = command.phrases or [Phrase(quantifier="all")]
        for phrase in command.phrases:
            phrase.type, phrase.type_text = kinds[0]


def kind_in(name: str | None) -> tuple[TypeWord, str] | None:
    """The kind that a name ends with: 小夜灯 is a light."""
    tokens = lex_plain(spoken(name)) if name else ()
    return (tokens[-1].type, tokens[-1].text) if tokens and tokens[-1].type is not None else None


def _only_says_where(command: SpokenCommand, before: SpokenCommand) -> bool:
    """关灯吧，主卧的: a place behind a command that named none."""
    silent = command.action is None and command.value is None and not command.excluded and command.mood != "negation"
    where = bool(command.phrases) and all(phrase.places and not phrase.headed for phrase in command.phrases)
    return silent and where and all(phrase.headed and not phrase.places for phrase in before.phrases)


def _takes_back(command: SpokenCommand, before: SpokenCommand) -> bool:
    """Whether a "don't" narrows the command before it: 关掉所有的灯，不要关卧室的."""
    if before.mood == "negation" or not command.phrases or before.action is None:
        return False
    return command.action is None or bool(command.action.concepts & before.action.concepts)


def _inherit_types(command: SpokenCommand, source: SpokenCommand) -> None:
    for phrase in command.phrases:
        if not phrase.headed and source.phrases:
            phrase.type, phrase.type_text = source.phrases[0].type, source.phrases[0].type_text
