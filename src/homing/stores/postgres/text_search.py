"""The records that share words with a query, ranked by BM25, computed by the server in one statement.

The index names the records that have a word; how often it stands there is found by bisection, and how many they are is
how rare it is. So both the candidates and the ranking are exact, and no statistics have to be kept.

Or the records that contain most of some keywords. The index narrows to those that can contain a keyword at all; ILIKE
then counts. A keyword counts as contained where the text holds it as it is written, upper and lower case alike, or
where the index has all its words, so that 數據 is found by 数据 and ＡＰＩ by api. Among records with equally many
keywords the rarer keywords decide.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from homing.database.postgres.driver import Connection
from homing.records import KeywordMatch
from homing.stores.filters import Filter
from homing.stores.postgres.collection import Collection
from homing.stores.postgres.reading import SHOWN, conditions, match
from homing.stores.postgres.rows import is_plain, slots
from homing.text.tokens import query_terms, tokens

logger = logging.getLogger(__name__)

K1, B = 1.2, 0.75
"""BM25's customary constants, which are FTS5's too: how soon repetition stops counting, and how much length counts."""
UNIT = 1_000_000_000
"""Shares of the relevance are summed as whole billionths: in any order, equal texts get equal sums."""


@dataclass(frozen=True, slots=True)
class Relevant:
    """Rows of BM25 and the columns that were asked for, the most relevant first; the rest as `stores.store.Words`."""

    rows: list[tuple[Any, ...]]
    mass: float
    rarest: float
    texts: int


def search(
    connection: Connection, collection: Collection, query: str, limit: int, asked: Filter, shown: str
) -> Relevant:
    """The `limit` most relevant records, if so many exist, by BM25 and then id: BM25, and the columns of `shown`."""
    terms = query_terms(query)
    rarest, texts = idf(collection, 1), collection.records
    if not terms or not texts:
        return Relevant([], 0.0, rarest, texts)
    filtered, values = conditions(collection, asked, "f")
    joined = f"JOIN records f ON f.key = h.record{filtered}" if asked else ""
    rows = connection.execute(
        "WITH hits AS MATERIALIZED ("
        "SELECT w.record, w.length, a.slot, w.often FROM unnest(%s::bigint[]) AS a(slot) CROSS JOIN LATERAL ("
        "SELECT record, length, counts[width_bucket(a.slot, slots)]::float8 AS often FROM words "
        "WHERE slots @> ARRAY[a.slot] AND collection = %s AND user_id = %s) w), "
        f"rare AS (SELECT slot, {_idf('count(*)')} AS weight FROM hits GROUP BY slot), "
        f"best AS (SELECT h.record, {_bm25('h.length')} AS score FROM hits h JOIN rare USING (slot) {joined} "
        "GROUP BY h.record ORDER BY score DESC FETCH FIRST %s ROWS WITH TIES) "
        "SELECT known.terms, known.weight, found.* FROM (SELECT count(*) AS terms, sum(weight) AS weight FROM rare) "
        f"AS known LEFT JOIN (SELECT best.score::float8 / {UNIT} AS score, {shown} FROM best "
        "JOIN records r ON r.key = best.record ORDER BY best.score DESC, r.id LIMIT %s) AS found ON true "
        "ORDER BY found.score DESC, found.id",
        [
            slots(collection.id, terms), collection.id, collection.user, collection.records,
            *_constants(collection), *values, limit, limit,
        ],
        binary=True,
        prepare=False,
    ).fetchall()  # fmt: skip
    known, weight = rows[0][:2]
    unknown = (len(terms) - known) * idf(collection, 0)
    return Relevant([row[2:] for row in rows if row[2] is not None], (weight or 0.0) + unknown, rarest, texts)


def relevance(connection: Connection, collection: Collection, query: str, ids: Sequence[str]) -> dict[str, float]:
    """The BM25 of those records of these ids that share words with the query."""
    terms = query_terms(query)
    if not terms or not collection.records:
        return {}
    # A fifth of what a search costs: the other records that have a word are only counted.
    rows = connection.execute(
        f"WITH rare AS MATERIALIZED (SELECT a.slot, {_idf('n.texts')} AS weight FROM unnest(%s::bigint[]) AS a(slot) "
        "CROSS JOIN LATERAL (SELECT count(*) AS texts FROM words "
        "WHERE slots @> ARRAY[a.slot] AND collection = %s AND user_id = %s) n) "
        f"SELECT r.id, ({_bm25('w.length')})::float8 / {UNIT} FROM records r JOIN words w ON w.record = r.key "
        "CROSS JOIN rare CROSS JOIN LATERAL (SELECT width_bucket(rare.slot, w.slots) AS place) b "
        "CROSS JOIN LATERAL (SELECT w.counts[b.place]::float8 AS often WHERE w.slots[b.place] = rare.slot) h "
        "WHERE r.collection = %s AND r.user_id = %s AND r.id = ANY(%s) GROUP BY r.id",
        [
            collection.records, slots(collection.id, terms), collection.id, collection.user,
            *_constants(collection), collection.id, collection.user, list(ids),
        ],
        binary=True,
        prepare=False,
    ).fetchall()  # fmt: skip
    return dict(rows)


def search_keywords(
    connection: Connection, collection: Collection, keywords: Sequence[str], limit: int, asked: Filter
) -> list[KeywordMatch]:
    """The `limit` records with most of the keywords, if so many exist: `score` counts them, ties go to the rarer."""
    wanted = [(keyword, numbers) for keyword in keywords if (numbers := _telling(collection.id, keyword))]
    if not wanted or not collection.words:
        return []
    filtered, values = conditions(collection, asked, "r")
    contained = ", ".join(["(w.slots @> %s::bigint[] OR r.text ILIKE %s)::int"] * len(wanted))
    any_of = " OR ".join(["w.slots @> %s::bigint[]"] * len(wanted))
    statement = (
        f"WITH hits AS MATERIALIZED (SELECT w.record, w.length, ARRAY[{contained}] AS held "
        "FROM words w JOIN records r ON r.key = w.record "
        f"WHERE w.collection = %s AND w.user_id = %s AND ({any_of}){filtered}), "
        f"rare AS (SELECT k.place, {_idf('sum(k.there)')} AS weight "
        "FROM hits, unnest(held) WITH ORDINALITY AS k(there, place) GROUP BY k.place), "
        "best AS (SELECT h.record, h.held, sum(k.there) AS score, "
        "sum(k.there * rare.weight)::numeric(20, 9) AS relevance "
        "FROM hits h, unnest(h.held) WITH ORDINALITY AS k(there, place) JOIN rare USING (place) "
        "GROUP BY h.record, h.held) "
        f"SELECT {SHOWN}, best.score::float8, best.held FROM best JOIN records r ON r.key = best.record "
        "WHERE best.score > 0 ORDER BY best.score DESC, best.relevance DESC, r.id LIMIT %s"
    )
    logger.debug("%s", statement, extra={"sql": statement})
    held: list[Any] = [value for keyword, numbers in wanted for value in (numbers, _pattern(keyword))]
    narrowed = [numbers for _, numbers in wanted]
    rows = connection.execute(
        statement,
        [*held, collection.id, collection.user, *narrowed, *values, collection.records, limit],
        binary=True,
        prepare=False,
    ).fetchall()
    return [_keyword_match(collection.name, [keyword for keyword, _ in wanted], row) for row in rows]


def idf(collection: Collection, texts: int) -> float:
    """How much a word is worth that so many texts of a collection hold."""
    return math.log(1 + (max(collection.records - texts, 0) + 0.5) / (texts + 0.5))


def _idf(texts: str) -> str:
    """SQL for the same; its value is the number of records."""
    return f"ln(1 + (greatest(%s - {texts}, 0) + 0.5::float8) / ({texts} + 0.5::float8))"


def _bm25(length: str) -> str:
    """SQL for the relevance of a record; its values are the constants."""
    return f"sum((%s::float8 * rare.weight * h.often / (h.often + %s::float8 + %s::float8 * {length}))::bigint)"


def _constants(collection: Collection) -> list[float]:
    average = collection.words / collection.records or 1.0
    return [(K1 + 1) * UNIT, K1 * (1 - B), K1 * B / average]


def _keyword_match(collection: str, keywords: Sequence[str], row: Sequence[Any]) -> KeywordMatch:
    found = match(collection, row[:4], score=row[4])
    held = tuple(keyword for keyword, there in zip(keywords, row[5], strict=True) if there)
    return KeywordMatch(found.id, found.collection, None, found.metadata, found.text, found.score, held)


def _telling(collection: int, keyword: str) -> list[int]:
    """The words that a text with this keyword has in the index: of Chinese its pairs, which say where it stands."""
    found = dict.fromkeys(tokens(keyword))
    telling = [word for word in found if len(word) > 1 or word.isascii()] or list(found)
    return slots(collection, telling)


def _pattern(keyword: str) -> str:
    """What ILIKE looks for; the keyword is data, whatever signs it holds."""
    plain = keyword if is_plain(keyword) else ""
    return "%" + plain.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_") + "%" if plain else ""
