"""The rule parser: deterministic, bilingual, without a model."""

from __future__ import annotations

from dataclasses import replace

from homing.devices.lexicon.actions import Action, canonical
from homing.devices.lexicon.sayings import COMPLAINT_END, plainly
from homing.devices.lexicon.values import COLORS, MODES, PROPERTY_WORDS
from homing.devices.parsing.clauses import Clause, clauses
from homing.devices.parsing.mood import is_deferred, quotes_a_command
from homing.devices.parsing.phrases import Phrase, SpokenCommand, carry_over, kind_in, phrases
from homing.devices.parsing.titles import with_title
from homing.devices.parsing.tokens import Kind, Token, lex
from homing.devices.query import LAST_MENTIONED, REST, QueryIR, SpokenValue
from homing.devices.vocabulary import Vocabulary, canonical_type, is_chinese, spoken

SURE, PARTLY, LOST = 0.85, 0.6, 0.3
"""Confidence with everything understood, with words nobody knows, and without an action."""

MAX_CHARACTERS = 500
"""Characters of the longest sentence that is read. A longer text is no command, and half of it might mean another."""

SWITCHING = frozenset({"on", "off", "open", "close", "up", "down", "start"})


def parse_rules(text: str, vocabulary: Vocabulary) -> list[QueryIR]:
    """Every command of a sentence, in order; at least one QueryIR, without an action where there is none."""
    form = spoken(text)
    if len(form) > MAX_CHARACTERS:
        return [QueryIR(raw=text, confidence=LOST)]
    form = plainly(COMPLAINT_END.sub(r"\g<0>,", form))
    tokens = with_title(_shared_heads(_with_a_verb(form, vocabulary), vocabulary), form, text)
    if quotes_a_command(text) and not any(token.property == "title" for token in tokens):
        return [QueryIR(raw=text, mood="quotation", confidence=LOST)]
    commands = carry_over([made for clause in clauses(tokens) for made in _commands(clause, form)])
    deferred = is_deferred(tokens)
    chinese = is_chinese(form)
    irs = [ir for command in commands for ir in _irs(command, text, chinese, vocabulary, deferred)]
    if not irs:
        return [QueryIR(raw=text, confidence=LOST, deferred=deferred)]
    compound = len(irs) > 1
    return [ir.model_copy(update={"compound": compound}) for ir in irs]


def _with_a_verb(form: str, vocabulary: Vocabulary) -> list[Token]:
    """The tokens; where no verb is left, a name may have swallowed it: 把大门锁上, in a home with a 大门锁."""
    tokens = lex(form, vocabulary)
    if any(
        token.is_a(Kind.ACTION, Kind.CARRIER, Kind.PARTICLE, Kind.STATE, Kind.VALUE, Kind.QUESTION) for token in tokens
    ):
        return tokens
    without = frozenset(token.text for token in tokens if token.is_a(Kind.NAME))
    while without:
        other = lex(form, vocabulary, without=without)
        if any(token.is_a(Kind.ACTION) for token in other):
            return other
        longer = frozenset(token.text for token in other if token.is_a(Kind.TYPE) and len(token.text) > 1)
        without = without | longer if longer else frozenset()
    return tokens


def _shared_heads(tokens: list[Token], vocabulary: Vocabulary) -> list[Token]:
    """In a list a name may be a room and a kind: 客厅和厨房灯 are two rooms, 客厅电视和空调 both in one."""
    shared: list[Token] = []
    for position, token in enumerate(tokens):
        before, earlier = tokens[max(0, position - 1)], tokens[max(0, position - 2)]
        listed = position >= 2 and before.is_a(Kind.CONJUNCTION)
        if listed and token.is_a(Kind.NAME) and earlier.is_a(Kind.PLACE):
            shared += _room_and_kind(token, vocabulary) or [token]
            continue
        if listed and token.is_a(Kind.TYPE) and not token.is_a(Kind.NAME, Kind.ACTION) and earlier.is_a(Kind.NAME):
            rooms = [part for part in _room_and_kind(earlier, vocabulary) if part.is_a(Kind.PLACE)]
            shared += [replace(room, start=token.start, end=token.start) for room in rooms]
        shared.append(token)
    return shared


def _room_and_kind(name: Token, vocabulary: Vocabulary) -> list[Token]:
    """The parts of a name like 厨房灯; none where it is not made of a room and a kind of device."""
    parts = lex(name.text, vocabulary, without=frozenset({name.text}))
    if parts[-1].type is None or not parts[0].is_a(Kind.PLACE) or any(part.is_a(Kind.UNKNOWN) for part in parts):
        return []
    return [replace(part, start=part.start + name.start, end=part.end + name.start, name=None) for part in parts]


def _commands(clause: Clause, form: str) -> list[SpokenCommand]:
    """The commands of a clause: one, or one for each value (red, at 50%)."""
    action = _agreed(_joined(clause.actions), clause)
    found = phrases(clause.objects, form)
    values, words = _values_or_words(clause, action, found)
    if words:
        found = _with_words(found, words)
    if clause.question:
        action = Action(frozenset({"query"}), action.property if action else None)
    elif action is None and clause.only:
        action = Action(frozenset({"off"}))
    elif action is not None and not values and clause.little and _moves_a_cover(action, clause):
        action = Action(frozenset({"up" if action.concepts & {"open", "up"} else "down"}), "position")
    elif action is not None and not values and action.concepts <= {"up", "down"} and is_chinese(form):
        # 窗帘开大点 is a little more; "raise the blinds" raises them.
        action = replace(action, property="position") if _moves_a_cover(action, clause) else action
    made = []
    for value in values or (None,):
        property_name = _property(clause, action, value)
        meaning = _meaning(action, value, property_name, clause)
        made.append(
            SpokenCommand(
                meaning, property_name, _spoken_value(value, meaning), found, phrases(clause.excluded, form),
                clause.mood, clause.clear, clause.only, clause.english,
            )
        )  # fmt: skip
    return made


def _joined(actions: list[Action]) -> Action | None:
    """停止播放 stops, 开始打扫 starts or cleans; a verb that only leads ("check", "set") yields to the other."""
    if not actions:
        return None
    weak = {"query", "set"}
    strong = [action for action in actions if not action.concepts <= weak] or actions
    if strong[0].concepts & {"stop", "pause"} or len(strong) == 1:
        first = strong[0]
    else:
        first = replace(strong[0], concepts=strong[0].concepts | strong[1].concepts)
    implied = [action for action in actions if action.property] or [first]
    types = [action for action in actions if action.type] or [first]
    return replace(first, property=implied[0].property, type=types[-1].type)


def _values_or_words(
    clause: Clause, action: Action | None, found: list[Phrase]
) -> tuple[list[SpokenValue], list[Token]]:
    """In "turn on the red lamp" and 打开灯2 the value is part of the name."""
    values: list[SpokenValue] = []
    words: list[Token] = []
    switching = action is not None and bool(action.concepts & {"on", "off", "open", "close"}) and not clause.to_value
    for token in clause.values:
        value = token.value
        if value is None:
            continue
        color = token.text in COLORS
        mode = token.text in MODES and action is not None and "off" in action.concepts
        bare = value.number is not None and value.unit is None
        if (switching and found and (color or mode or bare)) or clause.question:
            words.append(token)
        else:
            values.append(value)
    return values, words


def _with_words(found: list[Phrase], words: list[Token]) -> list[Phrase]:
    text = " ".join(token.text for token in words)
    last = found[-1] if found else Phrase()
    head = last.unknown or last.type_text or last.name or ""
    if last.name and not last.type:
        head = last.name
    last.unknown = " ".join(filter(None, (head, text))) if text.isascii() else text + head
    return found or [last]


def _agreed(action: Action | None, clause: Clause) -> Action | None:
    """A verb that implies another property than was said: warmer light has a lower colour temperature."""
    said = clause.properties[0].property if clause.properties else None
    if action is None or said is None or action.property in (None, said):
        return action
    if (said, action.property) == ("color_temperature", "temperature"):
        turned = {"up": "down", "down": "up"}
        return Action(frozenset(turned.get(concept, concept) for concept in action.concepts), said)
    return None


def _property(clause: Clause, action: Action | None, value: SpokenValue | None) -> str | None:
    """What the value is about by its unit or word, else what was said, else what the verb implies."""
    said = clause.properties[0].property if clause.properties else None
    if value is not None and value.unit in ("°", "°C", "°F"):
        return "temperature"
    if value is not None and value.unit == "K":
        return "color_temperature"
    if value is not None and any(token.property == "title" for token in clause.values):
        return "title"
    if value is not None and value.number is not None and not value.unit and said is None and _only_a_place(clause):
        return "temperature"
    if value is not None and value.text:
        if value.text in ("low", "medium", "high"):
            return said or "speed"
        return "color" if value.text in COLORS.values() and value.text not in MODES.values() else said or "mode"
    return said or (action.property if action is not None else None)


def _moves_a_cover(action: Action, clause: Clause) -> bool:
    """拉开一点 and 窗帘开一点 move a cover by a little, 灯开一点 does not."""
    if action.concepts <= {"open", "close"}:
        return True
    kinds = [token.type or (kind_in(token.name) or (None,))[0] for token in clause.objects]
    moves = action.concepts & {"open", "close", "up", "down"}
    return action.property is None and bool(moves) and any(kind and kind.types == {"cover"} for kind in kinds)


def _only_a_place(clause: Clause) -> bool:
    """卧室26: a number and a room speak of the temperature there."""
    places = [token for token in clause.objects if token.is_a(Kind.PLACE)]
    heads = (Kind.NAME, Kind.TYPE, Kind.UNKNOWN, Kind.REFERENCE, Kind.ANY_DEVICE)
    return bool(places) and not any(token.is_a(*heads) and token not in places for token in clause.objects)


def _meaning(
    action: Action | None, value: SpokenValue | None, property_name: str | None, clause: Clause
) -> Action | None:
    """A value makes a command a setting; a property alone asks for it."""
    if value is not None and (action is None or action.concepts & SWITCHING or action.concepts <= {"set"}):
        direction = action.concepts & {"up", "down"} if action is not None else frozenset[str]()
        if action is not None and action.concepts & {"open", "close"}:
            # 放下来一半 says how far, 再放下来一半 by how much.
            direction = frozenset({"up" if "open" in action.concepts else "down"} if clause.more else ())
        if direction and value.number is not None and not clause.to_value:
            return Action(direction, property_name, action.type if action else None)
        return Action(frozenset({"set"}), property_name, action.type if action else None)
    if action is None and property_name is not None and not clause.excluded:
        return Action(frozenset({"query"}), property_name)
    return action


def _spoken_value(value: SpokenValue | None, meaning: Action | None) -> SpokenValue | None:
    if value is None or meaning is None:
        return value
    relative = bool(meaning.concepts & {"up", "down"}) and value.number is not None
    return value.model_copy(update={"relative": relative})


def _irs(command: SpokenCommand, text: str, chinese: bool, vocabulary: Vocabulary, deferred: bool) -> list[QueryIR]:
    if command.action is None and not any(phrase.headed or phrase.places for phrase in command.phrases):
        return []
    if command.mood == "question" and not command.phrases and command.property is None:
        return []
    action = ""
    if command.action is not None:
        words = PROPERTY_WORDS.get(command.property or "")
        action = canonical(command.action.concepts, words, command.property, chinese and not command.english)
    targets = command.phrases or [Phrase()]
    if command.mood == "question" and any(phrase.name for phrase in targets):
        # Reading does no harm: a known device is worth more than the words around it ("is the phone charging?").
        targets = [replace(phrase, unknown=None, feature=None) for phrase in targets if phrase.name]
    return [_ir(command, action, phrase, text, vocabulary, deferred) for phrase in targets]


def _ir(
    command: SpokenCommand, action: str, phrase: Phrase, text: str, vocabulary: Vocabulary, deferred: bool
) -> QueryIR:
    excluded = _exclusions(command.excluded, phrase, vocabulary)
    name = phrase.unknown or phrase.name
    rest = command.only or (phrase.rest and not excluded)
    if not action and phrase.name and not command.excluded:
        name, action = phrase.name, _own_verb(phrase)
    elif phrase.feature and action:
        action += phrase.feature if is_chinese(action) else f" {phrase.feature}"
    if not phrase.headed and phrase.place_name and command.property is None and not phrase.quantifier:
        name = phrase.place_name
    type_hint, type_word = _type_hint(command, phrase, vocabulary)
    reference = phrase.reference and not _only_points(phrase, command)
    everywhere = phrase.whole or (phrase.rest and excluded)
    several = phrase.plural and phrase.unknown is not None and command.mood != "question"
    quantifier = "except" if excluded else phrase.quantifier or ("all" if everywhere or several else "one")
    if command.mood == "question" and quantifier == "any":
        quantifier = "all"
    if action and (name or type_hint or phrase.places or phrase.reference or phrase.any_device or command.property):
        confidence = PARTLY if phrase.unknown or phrase.feature else SURE
    else:
        confidence = PARTLY if action else LOST
    references = [REST] if rest else [LAST_MENTIONED] if reference else []
    if phrase.here and not phrase.places:
        references.append("here")
    return QueryIR(
        raw=text,
        action=action,
        name_hint=name,
        type_hint=type_hint,
        type_word=type_word,
        scope_include=tuple(dict.fromkeys(vocabulary.place(place) or place for place in phrase.places)),
        scope_exclude=excluded,
        quantifier=quantifier,
        references=tuple(references),
        property=command.property,
        value=command.value,
        mood=command.mood,
        clear=command.clear,
        negated=command.mood == "negation",
        deferred=deferred,
        confidence=confidence,
    )


def _only_points(phrase: Phrase, command: SpokenCommand) -> bool:
    """左边那个床头灯 points at what it names, and "make it warmer in the study" at nothing."""
    return bool(phrase.unknown or phrase.name or ((phrase.places or phrase.here) and command.property))


def _own_verb(phrase: Phrase) -> str:
    """What is said of a known device in words no lexicon has: 让老伙计摇头. Its commands may know them."""
    said = phrase.feature or (phrase.unknown or "").replace(spoken(phrase.name or ""), " ")
    return said.strip()


def _type_hint(command: SpokenCommand, phrase: Phrase, vocabulary: Vocabulary) -> tuple[str | None, str | None]:
    """The type in the words of the closed list, if the home has one, and the word that was said."""
    hint = phrase.type.hint if phrase.type else None
    types = phrase.type.types if phrase.type else frozenset[str]()
    if hint is None and command.action is not None and command.action.type and not phrase.name:
        hint, types = command.action.type, frozenset({command.action.type})
    if hint is None:
        return None, phrase.any_device
    own = next((name for name in vocabulary.type_names if canonical_type(name) in types), None)
    return own or hint, phrase.type_text


def _exclusions(excluded: list[Phrase], target: Phrase, vocabulary: Vocabulary) -> tuple[str, ...]:
    found: list[str] = []
    for phrase in excluded:
        places = [vocabulary.place(place) or place for place in phrase.places]
        same_kind = phrase.type is None or phrase.type == target.type
        name = phrase.unknown or (phrase.name if not (phrase.type and places) else None)
        if name:
            found.append(name)
        elif places and same_kind:
            found += places
        elif places and phrase.type_text:
            joint = "的" if is_chinese(phrase.type_text) else " "
            found += [f"{place}{joint}{phrase.type_text}" for place in places]
        elif phrase.type_text:
            found.append(phrase.type_text)
    return tuple(dict.fromkeys(found))
