"""The rows that share words with a query, ranked by BM25. Rows that no index has yet are read as well."""

from __future__ import annotations

from homing.records import Match
from homing.stores.lance.engine import part, run
from homing.stores.lance.rows import SHOWN, match_of
from homing.stores.lance.table import Table
from homing.text.tokens import query_terms


def search(table: Table, collection: str, query: str, limit: int, condition: str | None) -> list[Match]:
    """The `limit` most relevant rows by score and then id."""
    terms = query_terms(query)
    if not terms:
        return []
    # A match query has no operators, and no token holds white space: whatever the query was, these are its words.
    asked = part("query").MatchQuery(" ".join(terms), "words")
    reach = limit + 32
    while True:
        builder = table.reader.query().nearest_to_text(asked).limit(reach).select([*SHOWN, "_score"])
        if condition is not None:
            builder = builder.where(condition)
        rows = run(builder.to_arrow()).to_pylist()
        found = {row["id"]: row for row in sorted(rows, key=lambda row: (row["_score"], row["id"]))}
        best = sorted(found.values(), key=lambda row: (-row["_score"], row["id"]))
        if len(rows) < reach or best[-1]["_score"] < best[limit - 1]["_score"]:
            return [match_of(row, collection, score=row["_score"]) for row in best[:limit]]
        # The last match ties with rows that were cut off: which of them belong to the answer is decided by their ids.
        reach *= 8
