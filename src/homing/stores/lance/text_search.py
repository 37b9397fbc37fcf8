"""The rows that share words with a query, ranked by BM25. Rows that no index has yet are read as well.

LanceDB weighs the words of a row by the texts that its index has, or, if the index lacks the row, by those and the
other rows that were searched: how well a text fits would depend on when it was written and on the filter. So where all
texts could be counted, what LanceDB found is weighed anew.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from homing.stores.lance.engine import part, run
from homing.stores.lance.reading import pages
from homing.stores.lance.table import Table, any_of
from homing.stores.lance.word_statistics import K1, Statistics

Found = tuple[float, dict[str, Any]]
"""A BM25, and the row that has it."""


def search(
    table: Table, known: Statistics, terms: list[str], limit: int, condition: str | None, columns: list[str]
) -> list[Found]:
    """The `limit` most relevant rows by BM25 and then id; with their `words`."""
    reach = limit + 32
    while True:
        rows = _asked(table, terms, reach, condition, [*columns, "words"])
        scores = sorted((row["_score"] for row in rows), reverse=True)
        if len(rows) < reach or scores[-1] < scores[limit - 1]:
            # A key that is there twice (written around us) is one match.
            found = {row["id"]: (_weighed(row, known, terms), row) for row in rows}
            return sorted(found.values(), key=lambda one: (-one[0], one[1]["id"]))[:limit]
        # The last match ties with rows that were cut off: which of them belong to the answer is decided by their ids.
        reach *= 8


def measure(table: Table, known: Statistics, terms: list[str], ids: list[str]) -> dict[str, float]:
    """The BM25 of those of these records that share a word with the query, by id."""
    if known.held is not None:
        return {name: known.bm25(known.held[name].counts, terms) for name in ids if name in known.held}
    columns = ["id", "words"]
    if known.exact:
        rows = [row for page in pages(table, ids, columns) for row in page.to_pylist()]
    else:
        rows = _asked(table, terms, len(ids), any_of("id", ids), columns)
    return {row["id"]: _weighed(row, known, terms) for row in rows}


def _weighed(row: dict[str, Any], known: Statistics, terms: list[str]) -> float:
    """With LanceDB a term brings up to `K1 + 1` times its idf."""
    return known.bm25(Counter(row["words"].split()), terms) if known.exact else row["_score"] / (K1 + 1)


def _asked(
    table: Table, terms: list[str], reach: int, condition: str | None, columns: list[str]
) -> list[dict[str, Any]]:
    if not terms:
        return []
    # A match query has no operators, and no token holds white space: whatever the query was, these are its words.
    asked = part("query").MatchQuery(" ".join(terms), "words")
    builder = table.reader.query().nearest_to_text(asked).limit(reach).select([*columns, "_score"])
    if condition is not None:
        builder = builder.where(condition)
    rows: list[dict[str, Any]] = run(builder.to_arrow()).to_pylist()
    return rows
