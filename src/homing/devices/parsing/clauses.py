"""From tokens to clauses: one verb each, with what was said about it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from homing.devices.lexicon import words
from homing.devices.lexicon.actions import CARRIERS, PARTICLES, Action
from homing.devices.parsing.mood import about_something_else, complaint_of, is_clear, is_negated, mood_of
from homing.devices.parsing.tokens import Kind, Token
from homing.devices.query import Mood

OBJECTS = (Kind.NAME, Kind.TYPE, Kind.PLACE, Kind.UNKNOWN, Kind.PROPERTY, Kind.REFERENCE, Kind.ANY_DEVICE, Kind.HERE)
PLACES = (Kind.PLACE, Kind.WHOLE, Kind.HERE)
TRIGGERS = frozenset({"leave", "but leave", "and leave", "keep", "but keep", "and keep", "保留", "留着"}) | words.ONLY
"""Exclusions that carry a verb of their own: leave the bedroom on."""


@dataclass
class Clause:
    """The tokens of one command or question, sorted by what they do in it."""

    objects: list[Token] = field(default_factory=list)
    excluded: list[Token] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    values: list[Token] = field(default_factory=list)
    properties: list[Token] = field(default_factory=list)
    mood: Mood = "command"
    clear: bool = True
    negated: bool = False
    to_value: bool = False
    more: bool = False
    little: bool = False
    only: bool = False
    english: bool = False

    @property
    def question(self) -> bool:
        return self.mood == "question"

    @property
    def empty(self) -> bool:
        return not (self.objects or self.excluded or self.actions or self.values or self.properties)


def clauses(tokens: list[Token]) -> list[Clause]:
    """The clauses of a sentence, in order; politeness alone makes none."""
    found: list[Clause] = []
    quoting = False
    for segment, asks in _segments(tokens):
        mood: Mood = "quotation" if quoting else mood_of(segment, asks=asks)
        # Whatever comes after "he said" may be what was said.
        quoting = mood == "quotation"
        complaint = complaint_of(segment) is not None
        if not complaint and all(token.is_a(Kind.CORRECTION) or token.kinds <= {Kind.FILLER} for token in segment):
            # "…, no, …" and 算了 take back what was said before.
            found = [] if any(token.is_a(Kind.CORRECTION) for token in segment) else found
            continue
        strange = [_unclear(token) for token in segment]
        parts = _by_verb(bind(strange), mood)
        # Of 打开客厅灯不要打开厨房灯 only the second half forbids.
        alone = len(parts) == 1 or mood != "negation"
        found += [_sort(part, mood if alone else mood_of(part), segment) for part in parts]
    return _without_remarks([clause for clause in found if not clause.empty or clause.mood == "complaint"])


def _without_remarks(found: list[Clause]) -> list[Clause]:
    """屋里好热，开空调: what is said beside a command does not spoil it; a quotation beside one does."""
    commands = [clause for clause in found if clause.mood == "command" and (clause.actions or clause.values)]
    if not commands:
        return found
    for remark in (clause for clause in found if clause.mood in ("statement", "complaint")):
        _take_over(remark, commands[0])
    return [clause for clause in found if clause.mood not in ("statement", "complaint")]


def _take_over(remark: Clause, command: Clause) -> None:
    """大门没锁，锁一下; the oven is on, turn it off: what a command leaves out, the remark before it named."""
    if remark.mood == "complaint" and remark.actions and not any(a.property or a.type for a in command.actions):
        command.actions = [
            replace(action, property=remark.actions[0].property)
            if action.concepts <= {"up", "down", "open", "close"}
            else action
            for action in command.actions
        ]
    heads = [token for token in command.objects if token.is_a(*OBJECTS) and not token.is_a(Kind.REFERENCE, Kind.OF)]
    named = [token for token in remark.objects if token.is_a(Kind.NAME, Kind.TYPE, Kind.PLACE)]
    if not heads and not any(action.type for action in command.actions):
        rest = [token for token in command.objects if not token.is_a(Kind.REFERENCE)]
        command.objects = [*named, *rest] if named else command.objects
    elif remark.mood == "complaint" and not any(token.is_a(*PLACES, Kind.NAME) for token in command.objects):
        command.objects = [*(token for token in named if token.is_a(Kind.PLACE)), *command.objects]


def _unclear(token: Token) -> Token:
    """打开台灯算了: a correction inside a command leaves open what is meant."""
    return replace(token, kinds=frozenset({Kind.UNKNOWN})) if token.kinds <= {Kind.CORRECTION} else token


def _segments(tokens: list[Token]) -> list[tuple[list[Token], bool]]:
    """Cut at commas and 然后, and at an "and" between two commands; with each, whether a question mark follows."""
    segments: list[list[Token]] = [[]]
    asking: set[int] = set()
    for position, token in enumerate(tokens):
        cut = token.is_a(Kind.SEPARATOR) and not token.is_a(Kind.NAME, Kind.CONJUNCTION)
        if token.text == "再":
            cut = _has_verb(segments[-1])
        elif token.text == "but" and not _has_verb(_until_separator(tokens[position + 1 :])):
            # Every room but the nursery.
            segments[-1].append(replace(token, kinds=frozenset({Kind.EXCEPT_OPEN})))
            continue
        if token.is_a(Kind.CONJUNCTION) and _has_verb(segments[-1]):
            rest = _until_separator(tokens[position + 1 :])
            cut = _has_verb(rest) or _forbids(rest) or (_has_value(segments[-1]) and _has_value(rest))
        if cut:
            if token.text == "?":
                asking.add(len(segments) - 1)
            segments.append([])
        else:
            segments[-1].append(token)
    return [(segment, at in asking) for at, segment in enumerate(segments) if segment]


def _until_separator(tokens: list[Token]) -> list[Token]:
    end = next((i for i, token in enumerate(tokens) if token.is_a(Kind.SEPARATOR, Kind.CONJUNCTION)), len(tokens))
    return tokens[:end]


def _has_verb(tokens: list[Token]) -> bool:
    """Whether the tokens hold a verb: 打开, turn … off, or a bare off; "on the first floor" is none."""
    return any(token.action is not None for token in bind(tokens))


def _has_value(tokens: list[Token]) -> bool:
    """Whether something is given a value: the desk lamp to blue."""
    return any(token.is_a(Kind.VALUE) for token in tokens) and any(token.is_a(*OBJECTS) for token in tokens)


def _forbids(tokens: list[Token]) -> bool:
    return bool(tokens) and tokens[0].is_a(Kind.NEGATION, Kind.EXCEPT_OPEN)


def bind(tokens: list[Token]) -> list[Token]:
    """English verbs joined with their particles, and words that are verb and noun decided for one of them."""
    tokens = _decide_nouns(tokens)
    carriers = [i for i, token in enumerate(tokens) if token.is_a(Kind.CARRIER)]
    left_alone = next((i for i, token in enumerate(tokens) if token.text in TRIGGERS), len(tokens))
    tokens = [
        replace(t, kinds=frozenset({Kind.OF})) if t.is_a(Kind.PARTICLE) and i > left_alone else t
        for i, t in enumerate(tokens)
    ]
    particles = [i for i, token in enumerate(tokens) if token.is_a(Kind.PARTICLE)]
    verbs = [i for i, token in enumerate(tokens) if token.action is not None]
    close_by = [i for i in particles if i - 1 in carriers]
    chosen = close_by or [
        i for i in particles if not _is_preposition(tokens, i, particles, bool(verbs), bool(carriers))
    ]
    chosen = [
        i for i in chosen if not verbs or carriers or (tokens[i].text in ("off", "on") and _only_states(tokens, verbs))
    ]
    bound = list(tokens)
    for i in particles:
        if i in chosen:
            bound[i] = replace(tokens[i], kinds=frozenset({Kind.ACTION}), action=_particle(tokens, i, carriers))
        else:
            bound[i] = replace(tokens[i], kinds=frozenset({Kind.OF}))
    for i in carriers:
        bound[i] = _carrier(tokens, i, bool(chosen), bool(verbs))
    return bound


def _only_states(tokens: list[Token], verbs: list[int]) -> bool:
    """In "make the lights on" the verb says nothing itself."""
    return all(tokens[i].text in ("make", "set") for i in verbs)


def _decide_nouns(tokens: list[Token]) -> list[Token]:
    """lock, 锁 and switch are verbs only where no other verb is and they come first."""
    content = [i for i, token in enumerate(tokens) if not token.kinds <= {Kind.FILLER, Kind.NEGATION, Kind.OBJECT_MARK}]
    sure = any(token.action is not None and not token.is_a(Kind.TYPE, Kind.NAME) for token in tokens)
    decided = list(tokens)
    for i, token in enumerate(tokens):
        if not token.is_a(Kind.TYPE, Kind.NAME) or not token.is_a(Kind.ACTION, Kind.CARRIER):
            continue
        first = content[:1] == [i]
        followed = i + 1 < len(tokens) and tokens[i + 1].is_a(Kind.PARTICLE)
        if token.is_a(Kind.CARRIER):
            verb = (first or followed) and not (
                i > 0 and tokens[i - 1].is_a(Kind.TYPE, Kind.NAME, Kind.PLACE, Kind.ALL)
            )
        else:
            verb = first and not sure
        keep = {Kind.ACTION, Kind.CARRIER} if verb else {Kind.TYPE, Kind.NAME}
        decided[i] = replace(
            token,
            kinds=frozenset(token.kinds & keep),
            action=token.action if verb else None,
            type=None if verb else token.type,
            name=None if verb else token.name,
        )
    return decided


def _is_preposition(tokens: list[Token], i: int, particles: list[int], verb: bool, carrier: bool) -> bool:
    """The "on" of "on the first floor": a place or device follows, and something else is the verb."""
    if tokens[i].text != "on":
        return False
    following = next((token for token in tokens[i + 1 :] if token.text not in ("the", "my", "our", "your")), None)
    if (
        following is None
        or following.text.startswith("in ")
        or not following.is_a(*PLACES, Kind.NAME, Kind.TYPE, Kind.UNKNOWN, Kind.REFERENCE)
    ):
        return False
    return verb or not carrier or any(other != i for other in particles)


def _particle(tokens: list[Token], i: int, carriers: list[int]) -> Action:
    concepts = PARTICLES[tokens[i].text]
    if not any(tokens[c].text in ("roll", "pull", "put", "bring", "get") for c in carriers):
        concepts -= {"open", "close"}
    if any(tokens[c].text == "shut" for c in carriers):
        concepts = frozenset({"off"}) if "off" in concepts else frozenset({"close"})
    return Action(concepts)


def _carrier(tokens: list[Token], i: int, particle: bool, verb: bool) -> Token:
    """A carrier without its particle: "turn it to 50%" sets, "shut the blinds" closes, "I want" says nothing."""
    token = tokens[i]
    alone = not particle and not verb and token.text in ("turn", "switch", "put", "get", "have", "bring")
    if alone and any(other.is_a(Kind.VALUE) for other in tokens):
        return replace(token, kinds=frozenset({Kind.ACTION}), action=Action(frozenset({"set"})))
    if token.is_a(Kind.EXCEPT_OPEN):
        return token
    if token.action is not None and not particle:
        return replace(token, kinds=frozenset({Kind.ACTION}))
    known = token.text in CARRIERS and (particle or verb or token.text in ("want", "need", "like", "have"))
    return replace(token, kinds=frozenset({Kind.FILLER if known else Kind.UNKNOWN}), action=None)


def _by_verb(tokens: list[Token], mood: Mood) -> list[list[Token]]:
    """Cut where a second verb begins another command: 开灯|关空调, 卧室灯打开|客厅灯关掉, 打开空调|调到26度."""
    verbs = [i for i, token in enumerate(tokens) if token.action is not None]
    if len(verbs) < 2 or mood == "question":
        return [tokens]
    heads = (Kind.NAME, Kind.TYPE, Kind.UNKNOWN, Kind.PROPERTY, Kind.REFERENCE, Kind.ANY_DEVICE)
    object_first = any(token.is_a(*heads) for token in tokens[: verbs[0]])
    cuts = []
    for before, verb in pairwise(verbs):
        between = range(before + 1, verb)
        new_object = [i for i in between if tokens[i].is_a(*OBJECTS, Kind.OBJECT_MARK)]
        valued = any(tokens[i].is_a(Kind.VALUE) for i in between)
        if not valued and _one_verb(tokens[before].action, tokens[verb].action, apart=bool(new_object)):
            continue
        marks = [i for i in between if tokens[i].is_a(Kind.OBJECT_MARK)]
        cut = marks[0] if marks else new_object[0] if object_first and new_object else verb
        # "Don't" and 别 belong to the verb they stand before.
        while cut - 1 > before and tokens[cut - 1].is_a(Kind.NEGATION, Kind.EXCEPT_OPEN):
            cut -= 1
        cuts.append(cut)
    edges = [0, *cuts, len(tokens)]
    parts = [tokens[a:b] for a, b in pairwise(edges)]
    if len(parts) > 1 and not any(token.action is not None for token in parts[-1]):
        parts[-2:] = [parts[-2] + parts[-1]]
    return parts


def _one_verb(first: Action | None, second: Action | None, *, apart: bool) -> bool:
    """开始打扫 and 停止播放 are one command each, and so is "make the lamp dimmer", whose parts stand apart."""
    if first is None or second is None:
        return False
    if apart:
        return first.concepts == {"set"} and second.property is not None and bool(second.concepts & {"up", "down"})
    leading = first.concepts & {"start", "stop", "resume", "query", "set", "pause"}
    return (bool(leading) and "set" not in second.concepts) or first.concepts == second.concepts


def _sort(tokens: list[Token], mood: Mood, segment: list[Token]) -> Clause:
    clause = Clause(mood=mood, clear=is_clear(segment))
    leaves = mood == "question" and any(token.text in TRIGGERS for token in tokens)
    inside, outside = ([], [t for t in tokens if t.text not in TRIGGERS]) if leaves else _exclusion(tokens)
    clause.excluded = inside
    clause.only = any(token.text in words.ONLY for token in tokens)
    if mood == "question" and about_something_else(segment):
        clause.mood = "statement"
    if mood in ("command", "negation"):
        clause.negated = is_negated(outside) or (mood == "negation" and not inside)
        clause.mood = "negation" if clause.negated else "command"
    complaint = complaint_of(segment)
    if mood == "complaint" and complaint is not None:
        clause.actions.append(Action(frozenset({complaint[1]}), complaint[0]))
        clause.english = segment[0].text.isascii()
        known = (Kind.NAME, Kind.TYPE, Kind.PLACE, Kind.HERE)
        outside = [
            token
            for token, after in zip(outside, [*outside[1:], None], strict=True)
            if token.is_a(*known) or (token.is_a(Kind.UNKNOWN) and after is not None and after.is_a(Kind.TYPE))
        ]
    clause.more = any(token.text in words.MORE for token in segment)
    clause.little = any(token.text in words.LITTLE for token in segment)
    for i, token in enumerate(outside):
        if token.is_a(Kind.TO) and i + 1 < len(outside) and _next_value(outside[i + 1 :]):
            clause.to_value = True
        if token.kinds <= {Kind.UNKNOWN} and token.text in words.MEDIA and clause.actions and clause.actions[0].type:
            continue
        if token.is_a(Kind.NAME, Kind.PLACE):
            clause.objects.append(token)
        elif token.action is not None:
            clause.actions.append(token.action)
            clause.english |= token.text.isascii()
        elif token.state is not None:
            meant = frozenset({"query"}) if clause.question else words.STATE_CONCEPTS[token.state]
            clause.actions.append(Action(meant))
        elif token.is_a(Kind.VALUE) and not (token.is_a(Kind.TYPE) and _is_head(outside, token)):
            clause.values.append(token)
        elif token.is_a(Kind.PROPERTY):
            clause.properties.append(token)
        elif token.is_a(
            *OBJECTS, Kind.ALL, Kind.ANY, Kind.COUNT, Kind.REST, Kind.WHOLE, Kind.CONJUNCTION, Kind.OF, Kind.ALSO
        ):
            clause.objects.append(token)
    return clause


def _end_of_name(tokens: list[Token], opener: int, closer: int) -> int:
    """把除了落地灯的客厅灯关掉: behind the 的 stands what is meant, unless 都 follows (除了卧室的灯都打开)."""
    if closer < len(tokens) and tokens[closer].action is None:
        return closer
    marks = [i for i in range(opener + 2, closer) if tokens[i].text in ("的", "嘅")]
    if not marks or any(token.is_a(Kind.ALL, Kind.REST) for token in tokens[closer:]):
        return closer
    behind = any(token.is_a(Kind.TYPE, Kind.NAME) for token in tokens[marks[-1] : closer])
    return marks[-1] if behind and tokens[opener + 1].is_a(Kind.NAME) else closer


def _is_head(tokens: list[Token], token: Token) -> bool:
    """In "turn on the heating" heating is the device, in "set the AC to heating" it is the mode."""
    return not any(other is not token and other.is_a(Kind.NAME, Kind.TYPE, Kind.REFERENCE) for other in tokens)


def _next_value(tokens: list[Token]) -> bool:
    following = next((token for token in tokens if not token.kinds <= {Kind.FILLER}), None)
    return following is not None and following.is_a(Kind.VALUE)


def _exclusion(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    """What is excluded, and the rest of the clause."""
    opener = next((i for i, token in enumerate(tokens) if token.is_a(Kind.EXCEPT_OPEN)), None)
    closer = next(
        (i for i, t in enumerate(tokens) if t.is_a(Kind.EXCEPT_CLOSE) and i > (opener if opener is not None else -1)),
        None,
    )
    if opener is None:
        if closer is None or tokens[closer].text == "外":
            return [], tokens
        begin = closer
        while begin > 0 and tokens[begin - 1].is_a(*OBJECTS, Kind.CONJUNCTION, Kind.OF):
            begin -= 1
        return tokens[begin:closer], tokens[:begin] + tokens[closer + 1 :]
    if closer is None:
        leaves = tokens[opener].text in TRIGGERS
        stop = (Kind.ALL, Kind.OBJECT_MARK, Kind.REST, Kind.WHOLE)
        closer = next(
            (
                i
                for i in range(opener + 1, len(tokens))
                if tokens[i].is_a(*stop) or (tokens[i].action is not None and not leaves)
            ),
            len(tokens),
        )
        closer = _end_of_name(tokens, opener, closer)
        inside = [token for token in tokens[opener + 1 : closer] if token.action is None]
        if not any(token.is_a(*OBJECTS) for token in inside):
            # 主卧的不要动: what is left alone stands before the word that says so.
            return [token for token in tokens[:opener] if token.action is None], tokens[closer:]
        return inside, tokens[:opener] + tokens[closer:]
    return tokens[opener + 1 : closer], tokens[:opener] + tokens[closer + 1 :]
