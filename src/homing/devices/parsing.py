"""The public door of the parser: a chat model first, where there is one, and the rules always."""

from __future__ import annotations

from collections.abc import Iterable

from homing.chat import ChatModel
from homing.devices.device import Room
from homing.devices.llm_parser import parse_llm
from homing.devices.query import QueryIR
from homing.devices.rules import parse_rules
from homing.devices.vocabulary import Vocabulary

DEADLINE = 5.0
"""Seconds a chat model may take before the rules answer."""


def parse(
    text: str,
    *,
    rooms: Iterable[str | Room] = (),
    types: Iterable[str] = (),
    names: Iterable[str] = (),
    chat: ChatModel | None = None,
    deadline: float = DEADLINE,
) -> QueryIR:
    """The first command of a sentence; `compound` says that there are more, which `parse_all` gives.

    Rooms, types and names are the closed lists of a home; without them what looks like a room is taken for one.
    """
    return parse_all(text, rooms=rooms, types=types, names=names, chat=chat, deadline=deadline)[0]


def parse_all(
    text: str,
    *,
    rooms: Iterable[str | Room] = (),
    types: Iterable[str] = (),
    names: Iterable[str] = (),
    chat: ChatModel | None = None,
    deadline: float = DEADLINE,
) -> list[QueryIR]:
    """Every command of a sentence, in order, at least one: 开灯并关空调 is two.

    With a chat model its reading is taken if it keeps to the schema, after one repair at most, and does not turn the
    direction round; otherwise the rules read the sentence, with `parser="rules"` and a lower confidence.
    """
    return parse_with(text, Vocabulary.of(rooms, types, names), chat, deadline)


def parse_with(text: str, vocabulary: Vocabulary, chat: ChatModel | None, deadline: float = DEADLINE) -> list[QueryIR]:
    """The same with the vocabulary of a home."""
    by_rules = parse_rules(text, vocabulary)
    if chat is None or not text.strip():
        return by_rules
    return parse_llm(text, vocabulary, chat, by_rules, deadline) or by_rules
