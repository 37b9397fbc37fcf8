"""How many tokens a text will cost a language model, guessed offline, and what fits into a budget."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from homing.errors import InvalidArgument

_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_NOT_COUNTED_SINGLY = re.compile(r"[A-Za-z\u00c0-\u024f\d\s]+")
_DIGIT = re.compile(r"\d")

# An English word is about one token, a long one a little more; beyond 14 letters it is hardly a word but a name run
# together or encoded data, which tokenizers cut every three letters or so.
_WORD_COST = [1.0, 1.0, *(1.03 + 0.05 * max(0, length - 6) + 0.3 * max(0, length - 14) for length in range(2, 100))]


@dataclass(frozen=True, slots=True)
class Fit:
    """What was kept of a list: `kept` are indexes in order, `tokens` what they cost together.

    `truncated` is true when, and only when, the budget left something out.
    """

    kept: tuple[int, ...]
    tokens: int
    truncated: bool


def estimate_tokens(text: str) -> int:
    """About how many tokens the text is, for Chinese, English and both in one sentence; 0 for a blank text.

    A Chinese character or a sign counts as one token, an English word as a little more than one, a digit as half.
    Against the bundled model's own tokenizer the sum over a set of texts is within 5 %, half of all single texts within
    5 %, 95 % within 14 %. Large models differ among themselves: English is within 7 % of GPT-4, GPT-4o and Qwen.
    Chinese is 13-22 % low for GPT-4 (cl100k), and high where a vocabulary joins characters, by 18-28 % for GPT-4o
    (o200k) and 37-56 % for Qwen; there a budget is kept with room to spare.
    """
    lengths = map(len, _WORD.findall(text))
    letters = sum(_WORD_COST[length] if length < 100 else length / 3 for length in lengths)
    return ceil(letters + len(_NOT_COUNTED_SINGLY.sub("", text)) + 0.5 * len(_DIGIT.findall(text)))


def fit(costs: Sequence[int], max_tokens: int) -> Fit:
    """Keeps what fits into `max_tokens`, in order; after one that is too large, a smaller one may still fit."""
    if max_tokens < 0:
        raise InvalidArgument(f"max_tokens must not be negative; got {max_tokens}")
    kept: list[int] = []
    spent = 0
    for index, cost in enumerate(costs):
        if spent + cost <= max_tokens:
            kept.append(index)
            spent += cost
    return Fit(tuple(kept), spent, truncated=len(kept) < len(costs))
