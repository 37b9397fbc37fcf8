"""How alike two short texts are by their words alone: what is left when no model answers."""

from __future__ import annotations

from homing.devices.lexicon.actions import opposed
from homing.devices.meaning import meaning_of
from homing.text.tokens import tokens


def word_similarity(a: str, b: str) -> float:
    """1 for the same meaning in the lexicon, else the share of words in common; 0 for opposites."""
    first, second = meaning_of(a), meaning_of(b)
    if opposed(first.concepts, second.concepts):
        return 0.0
    if first.concepts & second.concepts and first.properties <= second.properties:
        return 1.0
    left, right = set(tokens(a)), set(tokens(b))
    return len(left & right) / len(left | right) if left | right else 0.0
