"""The records that share words with a query, ranked by BM25."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from homing.stores.attributes import Filter
from homing.stores.sqlite import filtering
from homing.stores.sqlite.rows import rows
from homing.stores.sqlite.writing import scope
from homing.text.tokens import query_terms


@dataclass(frozen=True, slots=True)
class Relevant:
    """A record and its relevance; higher is better."""

    record: int
    score: float


def search(connection: apsw.Connection, collection: int, query: str, limit: int, asked: Filter) -> list[Relevant]:
    """At least `limit` of the most relevant, if so many exist; more where the last ones tie."""
    terms = query_terms(query)
    if not terms:
        return []
    # Terms hold no quote (see homing.text.tokens); quoted, each is a word and never an operator.
    words = " OR ".join(f'"{term}"' for term in terms)
    expression = f'scope : "{scope(collection)}" AND words : ({words})'
    sql, bindings = filtering.conditions(collection, asked, "keyword_index.rowid")
    reach = limit + 32
    while True:
        found = rows(
            connection,
            "SELECT rowid, -bm25(keyword_index, 0.0, 1.0) AS score FROM keyword_index "
            f"WHERE keyword_index MATCH ?{sql} ORDER BY score DESC LIMIT ?",
            (expression, *bindings, reach),
        )
        if len(found) < reach or found[-1][1] < found[limit - 1][1]:
            return [Relevant(*row) for row in found]
        # The last match ties with rows that were cut off: which of them belong to the answer is decided by their ids.
        reach *= 8
