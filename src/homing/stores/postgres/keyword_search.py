"""The records that contain most of some keywords, counted by the server.

The index of words narrows to the records that can contain a keyword at all; ILIKE then counts. A keyword counts as
contained where the text holds it as it is written, upper and lower case alike, or where the index has all its words, so
that 數據 is found by 数据 and ＡＰＩ by api. Among records with equally many keywords the rarer keywords decide.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from homing.database.postgres.driver import Connection
from homing.records import KeywordMatch
from homing.stores.filters import Filter
from homing.stores.postgres.collection import Collection
from homing.stores.postgres.filtering import conditions
from homing.stores.postgres.matches import SHOWN, match
from homing.stores.postgres.slots import slots
from homing.stores.postgres.stored_text import is_plain
from homing.text.tokens import tokens

log = logging.getLogger(__name__)


def search(
    connection: Connection, collection: Collection, keywords: Sequence[str], limit: int, asked: Filter
) -> list[KeywordMatch]:
    """The `limit` records with most of the keywords, if so many exist: `score` counts them, ties go to the rarer."""
    wanted = [(keyword, numbers) for keyword in keywords if (numbers := _numbers(collection.id, keyword))]
    if not wanted or not collection.words:
        return []
    filtered, values = conditions(collection.id, asked, "r")
    contained = ", ".join(["(w.slots @> %s::bigint[] OR r.text ILIKE %s)::int"] * len(wanted))
    any_of = " OR ".join(["w.slots @> %s::bigint[]"] * len(wanted))
    statement = (
        f"WITH hits AS MATERIALIZED (SELECT w.record, w.length, ARRAY[{contained}] AS held "
        "FROM words w JOIN records r ON r.key = w.record "
        f"WHERE w.collection = %s AND w.user_id = %s AND ({any_of}){filtered}), "
        "rare AS (SELECT k.place, "
        "ln(1 + (greatest(%s - sum(k.there), 0) + 0.5::float8) / (sum(k.there) + 0.5::float8)) AS weight "
        "FROM hits, unnest(held) WITH ORDINALITY AS k(there, place) GROUP BY k.place), "
        "best AS (SELECT h.record, h.held, sum(k.there) AS score, "
        "sum(k.there * rare.weight)::numeric(20, 9) AS relevance "
        "FROM hits h, unnest(h.held) WITH ORDINALITY AS k(there, place) JOIN rare USING (place) "
        "GROUP BY h.record, h.held) "
        f"SELECT {SHOWN}, best.score::float8, best.held FROM best JOIN records r ON r.key = best.record "
        "WHERE best.score > 0 ORDER BY best.score DESC, best.relevance DESC, r.id LIMIT %s"
    )
    log.debug("%s", statement, extra={"sql": statement})
    held: list[Any] = [value for keyword, numbers in wanted for value in (numbers, _pattern(keyword))]
    narrowed = [numbers for _, numbers in wanted]
    rows = connection.execute(
        statement,
        [*held, collection.id, collection.user, *narrowed, *values, collection.records, limit],
        binary=True,
        prepare=False,
    ).fetchall()
    return [_match(collection.name, [keyword for keyword, _ in wanted], row) for row in rows]


def _match(collection: str, keywords: Sequence[str], row: Sequence[Any]) -> KeywordMatch:
    found = match(collection, row[:4], score=row[4])
    held = tuple(keyword for keyword, there in zip(keywords, row[5], strict=True) if there)
    return KeywordMatch(found.id, found.collection, None, found.metadata, found.text, found.score, held)


def _numbers(collection: int, keyword: str) -> list[int]:
    """The words that a text with this keyword has in the index: of Chinese its pairs, which say where it stands."""
    found = dict.fromkeys(tokens(keyword))
    telling = [word for word in found if len(word) > 1 or word.isascii()] or list(found)
    numbers: list[int] = slots(collection, telling).tolist()
    return numbers


def _pattern(keyword: str) -> str:
    """What ILIKE looks for; the keyword is data, whatever signs it holds."""
    plain = keyword if is_plain(keyword) else ""
    return "%" + plain.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_") + "%" if plain else ""
