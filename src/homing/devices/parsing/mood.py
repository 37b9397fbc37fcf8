"""What is meant by a clause: a command, a question about the state or a prohibition, and whether it is for now."""

from __future__ import annotations

from collections.abc import Sequence

from homing.devices.lexicon import words
from homing.devices.parsing.tokens import Kind, Token


def is_question(tokens: Sequence[Token]) -> bool:
    """Whether it asks, and is not a polite request."""
    content = [token for token in tokens if not token.kinds <= {Kind.FILLER} or token.text in words.QUESTION_START]
    starts = bool(content) and content[0].text in words.QUESTION_START
    marks = [
        t for t in tokens if t.is_a(Kind.QUESTION) and not t.is_a(Kind.FILLER, Kind.CARRIER, Kind.NEGATION, Kind.ANY)
    ]
    chinese = [token for token in marks if not token.text.isascii()]
    ends_on_not = bool(tokens) and tokens[-1].text in ("不", "没", "没有") and any(t.state or t.action for t in tokens)
    if not starts and not chinese and not ends_on_not and not any(t.text in ("how many", "which") for t in marks):
        return False
    polite = any(token.text in words.POLITE for token in tokens)
    only_particle = all(token.text in ("吗", "么") for token in chinese) and not starts
    return not (polite and only_particle and any(token.action is not None for token in tokens))


def is_negated(tokens: Sequence[Token]) -> bool:
    """Whether it forbids: 别开灯. A 不 or 没 at the end asks."""
    negations = [(at, token.text) for at, token in enumerate(tokens) if token.is_a(Kind.NEGATION)]
    return any(text not in ("不", "没") or at < len(tokens) - 1 for at, text in negations)


def is_deferred(tokens: Sequence[Token]) -> bool:
    """Whether it speaks of another time or a condition."""
    return any(token.is_a(Kind.WHEN) and not token.is_a(Kind.NAME) for token in tokens)


def state_concepts(tokens: Sequence[Token], state: Token, *, question: bool) -> frozenset[str]:
    """What a word for a state means: 把灯打开了 and "make sure it is locked" command it, anything else asks for it."""
    asks = question or any(other.action is not None and "query" in other.action.concepts for other in tokens)
    commands = state.text.isascii() or any(other.is_a(Kind.OBJECT_MARK) for other in tokens)
    return words.STATE_CONCEPTS[state.state or ""] if commands and not asks else frozenset({"query"})
