"""Token ids of texts, cut where the model stops reading, without reading what it never sees."""

from __future__ import annotations

import itertools
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from homing.embedders.texts import without_surrogates

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FIRST_WINDOW = 4096
"""Characters of a long text that are tokenised first; more only while they do not fill the model's window."""
MAX_WORD = 100
"""A longer word is one unknown piece, so a window that ends inside a word is wrong about at most so many pieces."""


@dataclass(frozen=True, slots=True)
class TokenIds:
    """The ids of one text from [CLS] to [SEP], and whether the text goes on beyond them."""

    ids: list[int]
    truncated: bool


def token_ids(tokenizer: Tokenizer, texts: Sequence[str], *, most: int) -> list[TokenIds]:
    """The ids of each text, at most `most` of them; all cores share the work.

    A text of a megabyte costs no more than its first few thousand characters, unless they hold next to no tokens.
    """
    texts = [without_surrogates(text) for text in texts]
    found: list[list[int]] = [[] for _ in texts]
    waiting, window = list(range(len(texts))), FIRST_WINDOW
    while waiting:
        encodings = tokenizer.encode_batch_fast([texts[position][:window] for position in waiting])
        for position, encoding in zip(waiting, encodings, strict=True):
            found[position] = encoding.ids
        waiting = [
            position for position in waiting if len(texts[position]) > window and len(found[position]) < most + MAX_WORD
        ]
        window *= 2
    return [_cut(ids, most) for ids in found]


def windows(ids: list[int], most: int, *, ends: Set[int] = frozenset()) -> list[list[int]]:
    """The ids in as few runs as hold at most `most` each, every one from [CLS] to [SEP].

    About equally long, and cut behind one of `ends`, the ids that end a sentence, wherever one lies in reach: the
    halves of a sentence say less than the whole.
    """
    if len(ids) <= most:
        return [ids]
    first, *inner, last = ids
    room = most - 2
    count = -(-len(inner) // room)
    cuts = [0]
    for left in range(count - 1, 0, -1):
        goal = cuts[-1] + (len(inner) - cuts[-1]) // (left + 1)
        reach = range(max(cuts[-1] + 1, len(inner) - room * left), min(cuts[-1] + room, len(inner) - 1) + 1)
        cuts.append(min((at for at in reach if inner[at - 1] in ends), key=lambda at: abs(at - goal), default=goal))
    return [[first, *inner[start:end], last] for start, end in itertools.pairwise([*cuts, len(inner)])]


def _cut(ids: list[int], most: int) -> TokenIds:
    if len(ids) <= most:
        return TokenIds(ids, truncated=False)
    return TokenIds([*ids[: most - 1], ids[-1]], truncated=True)
