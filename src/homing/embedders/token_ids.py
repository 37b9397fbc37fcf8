"""Token ids of texts, cut where the model stops reading, without reading what it never sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from homing.embedders.texts import without_surrogates

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FIRST_WINDOW = 4096
"""Characters of a long text that are tokenised first; more only while they do not fill the model's window."""
LONGEST_WORD = 100
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
            position
            for position in waiting
            if len(texts[position]) > window and len(found[position]) < most + LONGEST_WORD
        ]
        window *= 2
    return [_cut(ids, most) for ids in found]


def _cut(ids: list[int], most: int) -> TokenIds:
    if len(ids) <= most:
        return TokenIds(ids, truncated=False)
    return TokenIds([*ids[: most - 1], ids[-1]], truncated=True)
