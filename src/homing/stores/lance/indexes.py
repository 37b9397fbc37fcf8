"""The indexes of a table: which column, of what kind, and from how many rows on it pays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from homing.stores.lance.engine import part


@dataclass(frozen=True, slots=True)
class Index:
    """An index that a table gets when it has so many rows. Below that, reading everything is as fast."""

    column: str
    kind: Callable[[], Any]
    from_rows: int


def key_index(column: str = "id", *, from_rows: int) -> Index:
    """Rows by key: fetching, replacing, deleting."""
    return Index(column, lambda: part("index").BTree(), from_rows)


def words_index(column: str = "words", *, from_rows: int = 0) -> Index:
    """Words separated by spaces, ranked by BM25. They are taken as they are: our tokenizer has done the rest.

    Rows that it does not have yet are read with its tokenizer; without any index LanceDB would use its own, which takes
    `C++` for `C` and an emoji for nothing. So a table has it from the beginning.
    """
    return Index(
        column,
        lambda: part("index").FTS(
            base_tokenizer="whitespace",
            lower_case=False,
            stem=False,
            remove_stop_words=False,
            ascii_folding=False,
            max_token_length=None,
            with_position=False,
        ),
        from_rows,
    )


def labels_index(column: str = "attributes", *, from_rows: int) -> Index:
    """Rows by the texts in a list."""
    return Index(column, lambda: part("index").LabelList(), from_rows)
