"""What an action or the description of a command means, read with the lexicon of the sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from homing.devices.clauses import bind
from homing.devices.device import CommandSpec
from homing.devices.lexer import Kind, lex
from homing.devices.lexicon.actions import CANONICAL, SPECIAL, accepted
from homing.devices.lexicon.properties import PROPERTY_WORDS
from homing.devices.lexicon.words import STATE_CONCEPTS
from homing.devices.spoken import spoken
from homing.devices.vocabulary import Vocabulary

_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BOTH_WAYS = re.compile(r"\bon (?:or )?off\b|\bopen (?:or )?close\b|打开或关闭|打开关闭|开启关闭")
_NOTHING = Vocabulary()


@dataclass(frozen=True, slots=True)
class Meaning:
    """Concepts of verbs, properties, and the words that are neither."""

    concepts: frozenset[str] = frozenset()
    properties: frozenset[str] = frozenset()
    rest: tuple[str, ...] = ()


@lru_cache(maxsize=20_000)
def meaning_of(text: str) -> Meaning:
    """What a short text says is done: 打开设备, "Turns on the light", setBrightness."""
    form = spoken(_HUMPS.sub(" ", text))
    tokens = bind(lex(form, _NOTHING))
    concepts: set[str] = set()
    for token in tokens:
        if token.action is not None:
            concepts |= token.action.concepts
        elif token.state is not None:
            concepts |= STATE_CONCEPTS[token.state]
    if _BOTH_WAYS.search(form):
        concepts |= {"on", "off"}
    properties = {token.property for token in tokens if token.property}
    properties |= {token.action.property for token in tokens if token.action is not None and token.action.property}
    rest = tuple(token.text for token in tokens if token.kinds <= {Kind.UNKNOWN})
    return Meaning(frozenset(concepts), frozenset(filter(None, properties)), rest)


@lru_cache(maxsize=20_000)
def command_meaning(command: CommandSpec) -> Meaning:
    """What a command does, from its description, else from its id; its values may say that it goes both ways."""
    said = [meaning_of(text) for text in (command.description, *command.synonyms) if text]
    concepts = frozenset[str]().union(*(meaning.concepts for meaning in said))
    properties = frozenset[str]().union(*(meaning.properties for meaning in said))
    named = meaning_of(command.id)
    for option in command.value_list:
        concepts |= meaning_of(f"{option.value}").concepts | meaning_of(option.description).concepts
    return Meaning(concepts or named.concepts, properties or named.properties, said[0].rest if said else ())


@lru_cache(maxsize=20_000)
def wordings(command: CommandSpec) -> tuple[str, ...]:
    """The texts an action is compared with: the description, its synonyms, its values, and the usual ways to say it."""
    texts = [command.description or command.id, *command.synonyms]
    texts += [
        f"{command.description} {option.description}".strip() for option in command.value_list if option.description
    ]
    meaning = command_meaning(command)
    does = {concept for concept in CANONICAL if accepted(frozenset({concept})) & meaning.concepts}
    if "set" in meaning.concepts and meaning.properties:
        does |= {"up", "down"}
    for concept in sorted(does):
        texts += CANONICAL[concept]
        for name in sorted(meaning.properties):
            chinese, english = PROPERTY_WORDS[name]
            texts += (f"{CANONICAL[concept][0]}{chinese}", f"{CANONICAL[concept][1]} {english}")
            texts += SPECIAL.get((concept, name), ())
    return tuple(dict.fromkeys(texts))
