"""From a sentence to tokens: the cheapest way to cover it with words that the lexicon or the home knows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum, auto
from functools import cache, lru_cache

from homing.devices.lexicon import words
from homing.devices.lexicon.actions import ACTIONS, CARRIERS, PARTICLES, Action
from homing.devices.lexicon.things import FLOOR_WORDS, LOOKS_LIKE_ROOM, ROOM_CONCEPTS, TYPE_WORDS, TypeWord
from homing.devices.lexicon.values import (
    COLORS,
    EXTREMES,
    FRACTION,
    MODES,
    NUMBER,
    PROPERTIES,
    UNITS,
    number_of,
    share_of,
)
from homing.devices.query import SpokenValue
from homing.devices.vocabulary import Vocabulary, singular

NAME_COST, KNOWN_COST, UNKNOWN_COST = 0.6, 1.0, 2.5
CLASSIFIERS = frozenset("个盏台扇只把座部间首")
LEVELS = {"低": "low", "中": "medium", "高": "high"}
ENDS = ("", ",", "。", "!", "档", "速", "吧", "啊")
"""What may follow such a level: 风速调到低."""
MOVING = frozenset({"on", "off", "open", "close", "lock", "unlock", "up", "down", "start", "stop", "pause"})
"""Verbs that are known in other forms too: turned, opening."""
CHANGES = {
    **dict.fromkeys("亮光", Action(frozenset({"up"}), "brightness")),
    "暗": Action(frozenset({"down"}), "brightness"),
    **dict.fromkeys("高大热暖", Action(frozenset({"up"}))),
    **dict.fromkeys("低小冷凉", Action(frozenset({"down"}))),
}
"""What changes something where a number follows: 暗百分之二十."""


class Kind(StrEnum):
    """What a word may be; one word may be several."""

    ACTION = auto()
    CARRIER = auto()
    PARTICLE = auto()
    NAME = auto()
    TYPE = auto()
    ANY_DEVICE = auto()
    PLACE = auto()
    PROPERTY = auto()
    VALUE = auto()
    STATE = auto()
    ALL = auto()
    ANY = auto()
    COUNT = auto()
    REST = auto()
    EXCEPT_OPEN = auto()
    EXCEPT_CLOSE = auto()
    REFERENCE = auto()
    HERE = auto()
    WHOLE = auto()
    ALSO = auto()
    NEGATION = auto()
    CONJUNCTION = auto()
    SEPARATOR = auto()
    OBJECT_MARK = auto()
    OF = auto()
    TO = auto()
    BY = auto()
    FILLER = auto()
    QUESTION = auto()
    WHEN = auto()
    CORRECTION = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A stretch of the sentence and everything it may mean."""

    text: str
    kinds: frozenset[Kind] = frozenset()
    action: Action | None = None
    type: TypeWord | None = None
    name: str | None = None
    place: str | None = None
    property: str | None = None
    value: SpokenValue | None = None
    state: str | None = None
    start: int = 0
    end: int = 0
    plural: bool = field(default=False, compare=False)
    past: bool = field(default=False, compare=False)
    going: bool = field(default=False, compare=False)

    def is_a(self, *kinds: Kind) -> bool:
        """Whether it may be any of these."""
        return not self.kinds.isdisjoint(kinds)


INFLECTED = (Kind.NAME, Kind.TYPE, Kind.PLACE, Kind.ANY_DEVICE, Kind.PROPERTY, Kind.ACTION, Kind.CARRIER)
"""English words that are also found with an s: lights, and the verbs of descriptions (opens, turns)."""


def lex(form: str, vocabulary: Vocabulary, *, without: frozenset[str] = frozenset()) -> list[Token]:
    """The tokens of a sentence in its comparable form; what nothing knows is UNKNOWN, never dropped.

    `without` are words that are not to be found.
    """
    edges = _edges(form, vocabulary, without)
    best: list[tuple[float, Token | None]] = [(0.0, None)]
    best += [(float("inf"), None) for _ in form]
    for start in range(len(form)):
        cost = best[start][0]
        if cost == float("inf"):
            continue
        for price, token in edges[start]:
            known_cost, known = best[token.end]
            # Between equal prices the longer first word wins: 这里|的 over 这|里的.
            tie = cost + price == known_cost and known is not None and token.start > known.start
            if cost + price < known_cost or tie:
                best[token.end] = (cost + price, token)
    tokens: list[Token] = []
    last = best[-1][1]
    while last is not None:
        if last.text.strip():
            tokens.append(last)
        last = best[last.start][1]
    return _join_unknown(tokens[::-1])


@lru_cache(maxsize=10_000)
def lex_plain(form: str) -> tuple[Token, ...]:
    """The same by the words that every home has."""
    return tuple(lex(form, Vocabulary()))


def _edges(form: str, vocabulary: Vocabulary, without: frozenset[str]) -> dict[int, list[tuple[float, Token]]]:
    known, lengths = _lexicon()
    own = vocabulary.lengths
    edges: dict[int, list[tuple[float, Token]]] = defaultdict(list)
    for start in range(len(form)):
        if form[start] == " ":
            edges[start].append((0.0, Token(" ", start=start, end=start + 1)))
            continue
        if start > 0 and _latin(form[start]) and _latin(form[start - 1]):
            continue
        for length in sorted({*lengths.get(form[start], ()), *own}, reverse=True):
            end = start + length
            if end <= len(form) and _stands_alone(form, start, end) and form[start:end] not in without:
                token = _word(form[start:end], vocabulary, known)
                if token is not None:
                    price = NAME_COST if token.is_a(Kind.NAME, Kind.PLACE) else KNOWN_COST
                    edges[start].append((price, replace(token, start=start, end=end)))
        edges[start] += [(KNOWN_COST, token) for token in _numbers(form, start)]
        if (
            form[start] in LEVELS
            and start > 0
            and form[start - 1] in "到成为至"
            and form[start + 1 : start + 2] in ENDS
        ):
            end = start + 1 + (form[start + 1 : start + 2] in ("档", "速"))
            level = Token(form[start:end], frozenset({Kind.VALUE}), value=SpokenValue(text=LEVELS[form[start]]))
            edges[start].append((NAME_COST, replace(level, start=start, end=end)))
        if form[start] in CHANGES and (form.startswith("百分之", start + 1) or NUMBER.match(form, start + 1)):
            verb = Token(form[start], frozenset({Kind.ACTION}), action=CHANGES[form[start]])
            edges[start].append((NAME_COST, replace(verb, start=start, end=start + 1)))
        end = _end_of_unknown(form, start)
        edges[start].append((UNKNOWN_COST, Token(form[start:end], frozenset({Kind.UNKNOWN}), start=start, end=end)))
    return edges


def _word(text: str, vocabulary: Vocabulary, known: dict[str, Token]) -> Token | None:
    """The token of one exact text, from the home and the lexicon together."""
    found = _reading(text, vocabulary, known)
    if found is None:
        single = singular(text) if text[-1] == "s" else None
        found = _reading(single, vocabulary, known) if single else None
        if found is None and text.endswith(("ing", "ed")):
            return _inflected(text, known)
        if found is None or not found.is_a(*INFLECTED):
            return None
        noun = found.is_a(Kind.NAME, Kind.TYPE, Kind.PLACE, Kind.ANY_DEVICE, Kind.PROPERTY)
        found = replace(found, text=text if noun else found.text, plural=True)
    return found


def _reading(text: str, vocabulary: Vocabulary, known: dict[str, Token]) -> Token | None:
    base = known.get(text)
    name, place, own_type = vocabulary.names.get(text), vocabulary.places.get(text), vocabulary.types.get(text)
    if name is None and place is None and own_type is None:
        return base
    base = base or Token(text)
    kinds = set(base.kinds)
    kinds |= {kind for kind, there in ((Kind.NAME, name), (Kind.PLACE, place), (Kind.TYPE, own_type)) if there}
    return replace(base, kinds=frozenset(kinds), name=name, place=place or base.place, type=own_type or base.type)


def _inflected(text: str, known: dict[str, Token]) -> Token | None:
    """An English verb as it is said of the past (turned), or of what goes on (turning)."""
    past = text.endswith("ed")
    stem = text[:-2] if past else text[:-3]
    doubled = stem[:-1] if len(stem) > 2 and stem[-1] == stem[-2] else stem
    for base in (stem, stem + "e", doubled):
        verb = known.get(base)
        if verb is not None and (
            verb.is_a(Kind.CARRIER) or (verb.action is not None and verb.action.concepts & MOVING)
        ):
            kinds = verb.kinds & {Kind.ACTION, Kind.CARRIER}
            return replace(verb, kinds=frozenset(kinds), type=None, past=past, going=not past)
    return None


def _stands_alone(form: str, start: int, end: int) -> bool:
    """English words are not found inside longer ones; Chinese has no such edges."""
    before = start > 0 and _latin(form[start]) and _latin(form[start - 1])
    after = end < len(form) and _latin(form[end - 1]) and _latin(form[end])
    return not before and not after


def _latin(character: str) -> bool:
    return character.isalnum() and not "\u2e80" <= character <= "\uffff"


def _end_of_unknown(form: str, start: int) -> int:
    end = start + 1
    while _latin(form[start]) and end < len(form) and _latin(form[end]):
        end += 1
    return end


def _numbers(form: str, start: int) -> Iterator[Token]:
    """Values, times and floors that begin here."""
    if start > 0 and _latin(form[start]) and _latin(form[start - 1]):
        return
    floor = FLOOR_WORDS.match(form, start)
    if floor:
        yield Token(floor[0], frozenset({Kind.PLACE}), place=floor[0], start=start, end=floor.end())
    share = form.startswith("百分之", start)
    part = FRACTION.match(form, start)
    if part is not None and not share and (percent := share_of(part)) is not None:
        yield _value(form, start, part.end(), SpokenValue(number=percent, unit="%"))
    found = NUMBER.match(form, start + 3 if share else start)
    if found is None:
        return
    end = found.start() + len(found[0].rstrip().removesuffix(" and"))
    number = number_of(found[0])
    if number is None:
        return
    if share:
        yield _value(form, start, end, SpokenValue(number=number, unit="%"))
        return
    for half in (" and a half", " and one half"):
        if form.startswith(half, end):
            number, end = number + 0.5, end + len(half)
    if form.startswith("成", end) and number <= 10 and not form.startswith("成", start):
        yield _value(form, start, end + 1, SpokenValue(number=10 * number, unit="%"))
    unit, after = _unit(form, end, set(UNITS) | set(words.TIME_UNITS) | CLASSIFIERS)
    if unit in words.TIME_UNITS:
        yield Token(form[start:after], frozenset({Kind.WHEN}), start=start, end=after)
    elif unit in CLASSIFIERS:
        yield Token(form[start:after], frozenset({Kind.COUNT}), start=start, end=after)
    elif unit:
        if form.startswith("半", after):
            number, after = number + 0.5, after + 1
        yield _value(form, start, after, SpokenValue(number=number, unit=UNITS[unit] or None))
    elif _stands_alone(form, start, end):
        yield _value(form, start, end, SpokenValue(number=number))


def _value(form: str, start: int, end: int, value: SpokenValue) -> Token:
    return Token(form[start:end], frozenset({Kind.VALUE}), value=value, start=start, end=end)


def _unit(form: str, end: int, units: set[str]) -> tuple[str, int]:
    """The longest unit that follows a number, behind at most one space."""
    begin = end + 1 if form[end : end + 1] == " " else end
    for length in range(min(18, len(form) - begin), 0, -1):
        word = form[begin : begin + length]
        if word in units and (not _latin(word[-1]) or begin + length == len(form) or not _latin(form[begin + length])):
            return word, begin + length
    return "", end


def _join_unknown(tokens: list[Token]) -> list[Token]:
    """Neighbouring unknown characters are one unknown word, and may look like a room."""
    joined: list[Token] = []
    for token in _inside_unknown(tokens):
        last = joined[-1] if joined else None
        if last is not None and last.kinds == token.kinds == frozenset({Kind.UNKNOWN}) and token.start - last.end <= 1:
            gap = " " if token.start > last.end else ""
            joined[-1] = replace(last, text=last.text + gap + token.text, end=token.end)
        else:
            joined.append(token)
    return [
        replace(token, kinds=frozenset({Kind.PLACE}), place=token.text)
        if token.is_a(Kind.UNKNOWN) and LOOKS_LIKE_ROOM.match(token.text)
        else token
        for token in joined
    ]


def _inside_unknown(tokens: list[Token]) -> list[Token]:
    """A single small character between two unknown ones belongs to their word: 地|下|娱乐室 is one place."""
    small = {Kind.FILLER, Kind.OF, Kind.BY, Kind.TO, Kind.ALL, Kind.EXCEPT_CLOSE}
    marked = list(tokens)
    for position in range(1, len(tokens) - 1):
        before, token, after = marked[position - 1], tokens[position], tokens[position + 1]
        touching = before.end == token.start and token.end == after.start
        strangers = before.is_a(Kind.UNKNOWN) and after.is_a(Kind.UNKNOWN)
        if touching and strangers and len(token.text) == 1 and token.text != "的" and token.kinds <= small:
            marked[position] = replace(token, kinds=frozenset({Kind.UNKNOWN}))
    return marked


@cache
def _lexicon() -> tuple[dict[str, Token], dict[str, frozenset[int]]]:
    """Every word of the lexicon, and by first character how long they are, endings of English words included."""
    kinds: dict[str, set[Kind]] = defaultdict(set)
    tables: dict[Kind, Iterable[str]] = {
        Kind.ACTION: ACTIONS, Kind.CARRIER: CARRIERS, Kind.PARTICLE: PARTICLES, Kind.TYPE: TYPE_WORDS,
        Kind.PLACE: ROOM_CONCEPTS, Kind.PROPERTY: PROPERTIES, Kind.VALUE: COLORS | MODES | EXTREMES,
        Kind.STATE: words.STATES,
    }  # fmt: skip
    groups = tables | {kind: words.said(kind) for kind in Kind if kind in words.TABLES}
    for kind, entries in groups.items():
        for word in entries:
            kinds[word].add(kind)
    tokens = {
        word: Token(
            word,
            frozenset(found),
            action=ACTIONS.get(word),
            type=TYPE_WORDS.get(word),
            place=word if word in ROOM_CONCEPTS else None,
            property=PROPERTIES.get(word),
            value=_named_value(word),
            state=words.STATES.get(word),
        )
        for word, found in kinds.items()
    }
    lengths: dict[str, set[int]] = defaultdict(set)
    for word in tokens:
        lengths[word[0]] |= {len(word) + more for more in range(5 if word.isascii() else 1)}
    return tokens, {first: frozenset(found) for first, found in lengths.items()}


def _named_value(word: str) -> SpokenValue | None:
    if word in EXTREMES:
        return SpokenValue(extreme="max" if EXTREMES[word] == "max" else "min")
    text = COLORS.get(word) or MODES.get(word)
    return SpokenValue(text=text) if text else None
