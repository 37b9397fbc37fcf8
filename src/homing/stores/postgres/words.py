"""The keyword index in the server: what `homing.stores.postings` keeps, asked and joined by any number of processes.

Whoever reads sees one state of the database: the set of segments, whoever wrote them in whatever order, and what was
removed from them. Whoever joins segments of a collection has an advisory lock on its words until the end of the
transaction; writers that find it taken leave the joining to others.

Keywords are counted here as well: a keyword counts as contained where a text has all of its words, or holds it as it is
written, so that 數據 is found by 数据 and ＡＰＩ by api. Among texts with equally many the rarer keywords decide.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from homing.database import Row
from homing.database.postgres.database import PostgresTransaction
from homing.database.postgres.driver import Connection, psycopg
from homing.database.postgres.sessions import Sessions
from homing.records import KeywordMatch
from homing.stores.filters import Filter
from homing.stores.postgres.collection import Collection
from homing.stores.postgres.reading import SHOWN, conditions, match
from homing.stores.postgres.rows import is_plain
from homing.stores.postings import spelling
from homing.stores.postings.index import Index, ReadLists, Scores, View
from homing.stores.postings.question import Question
from homing.stores.postings.segment import Keys
from homing.stores.postings.tables import NAMED, WordTables, best_passing
from homing.stores.store import Worded, Words
from homing.text.tokens import tokens

log = logging.getLogger(__name__)

COUNTED = 50
"""Of how many texts, those with most keywords, it is looked up how they are written; of more where more are asked."""

_LOCK = "advisory_xact_lock(hashtextextended(current_schema() || ' words', $1))"


class PostgresWordTables(WordTables):
    """The rows of the index as one connection sees them."""

    def __init__(self, connection: Connection, user: str) -> None:
        super().__init__(_Binary(connection), {"user_id": user})

    def alone(self, collection: int) -> bool:
        """Whether nobody else joins segments of a collection; nobody will until the end of the transaction."""
        [(taken,)] = self._rows(f"SELECT pg_try_{_LOCK}", collection)
        return bool(taken)

    def wait(self, collection: int) -> bool:
        """Wait for those who join segments of a collection or write to it in a transaction; whether it is there."""
        self._rows(f"SELECT pg_{_LOCK}", collection)
        # Who drops the collection waits for this transaction, or this one for it.
        return bool(self._rows("SELECT id FROM collections WHERE id = $1 FOR KEY SHARE", collection))


class _Binary(PostgresTransaction):
    """A transaction whose answers come as they are, which for bytes is half as much."""

    def rows(self, sql: str, *values: Any) -> list[Row]:
        cursor = psycopg.RawCursor(self.connection)
        cursor.execute(sql, values, binary=True)
        return cursor.fetchall() if cursor.description else []


@dataclass(frozen=True, slots=True)
class Relevant:
    """Rows of BM25 and the columns that were asked for, the most relevant first; all else is in `words`."""

    rows: list[Row]
    words: Words

    def as_words(self) -> Words:
        """The same as the keyword leg answers it; the column that was asked for is the id."""
        return replace(self.words, found=tuple(Worded(name, score) for score, name in self.rows))


def search(
    connection: Connection, collection: Collection, query: str, limit: int, asked: Filter, shown: str, index: Index
) -> Relevant:
    """The `limit` most relevant records, if so many exist, by BM25 and then id: BM25, and the columns of `shown`.

    The columns begin with the id.
    """
    view, read = _view(connection, collection, index)
    question, corrected = spelling.put(view, query, read)
    keys, scores = _best(connection, collection, question, limit, asked) if limit else question.best(0)
    found = _shown(connection, collection, keys.tolist(), shown)
    scored = zip(keys.tolist(), scores.tolist(), strict=True)
    best = sorted(((score, *found[key]) for key, score in scored), key=lambda row: (-row[0], row[1]))
    return Relevant(best[:limit], Words((), question.mass, view.idf(1), view.texts, corrected))


def relevance(
    connection: Connection, collection: Collection, query: str, ids: Sequence[str], index: Index
) -> dict[str, float]:
    """The BM25 of those records of these ids that share words with the query."""
    if not query:
        return {}
    rows = connection.execute(
        "SELECT id, key FROM records WHERE collection = %s AND user_id = %s AND id = ANY(%s)",
        (collection.id, collection.user, list(ids)),
        binary=True,
    ).fetchall()
    view, read = _view(connection, collection, index)
    question, _ = spelling.put(view, query, read)
    scores = question.measure(np.array([key for _, key in rows], np.int64))
    return {name: score for (name, _), score in zip(rows, scores.tolist(), strict=True) if score > 0}


def search_keywords(
    connection: Connection, collection: Collection, keywords: Sequence[str], limit: int, asked: Filter, index: Index
) -> list[KeywordMatch]:
    """The `limit` records with most of the keywords, if so many exist: `score` counts them, ties go to the rarer."""
    wanted = {keyword: telling for keyword in keywords if (telling := _telling(keyword))}
    if not wanted:
        return []
    terms = list(dict.fromkeys(word for words in wanted.values() for word in words))
    view, read = _view(connection, collection, index)
    question = Question(view, terms, read)
    keys, matrix, weights = question.holding([[terms.index(word) for word in words] for words in wanted.values()])
    if asked:
        kept = np.isin(keys, _passing(connection, collection, asked, keys))
        keys, matrix = keys[kept], matrix[:, kept]
    reach = max(COUNTED, 4 * limit)
    indexed = dict(zip(keys[:reach].tolist(), matrix.T[:reach], strict=True))
    contained = ", ".join(["r.text ILIKE %s"] * len(wanted))
    statement = (
        f"SELECT r.key, ARRAY[{contained}], {SHOWN} FROM records r "
        "WHERE r.key = ANY(%s) AND r.user_id = %s ORDER BY r.id"
    )
    log.debug("%s", statement, extra={"sql": statement})
    rows = connection.execute(
        statement, [*map(_pattern, wanted), list(indexed), collection.user], binary=True, prepare=False
    ).fetchall()
    found = [(indexed[key] | np.array(written, np.bool_), row) for key, written, *row in rows]
    found.sort(key=lambda one: (-one[0].sum(), -(one[0] * weights).sum()))
    names = np.array(list(wanted), object)
    return [_keyword_match(collection.name, row, tuple(names[held])) for held, row in found[:limit]]


def merge(sessions: Sessions, place: tuple[str, int]) -> bool:
    """Join segments that are due, of a collection given with its user; nobody waits for it meanwhile."""
    user, collection = place

    def work(connection: Connection) -> bool:
        tables = PostgresWordTables(connection, user)
        chosen = tables.due(collection) if tables.wait(collection) else []
        if chosen:
            found = tables.read(collection, chosen)
            tables.exchange(found, found.joined())
        return bool(chosen)

    return sessions.write(work, user)


def _view(connection: Connection, collection: Collection, index: Index) -> tuple[View, ReadLists]:
    tables = PostgresWordTables(connection, collection.user)
    view = index.view(collection.id, *tables.state(collection.id), tables)
    log.debug("%d segments of collection %d", len(view.parts), collection.id)
    return view, partial(index.lists, tables)


def _best(
    connection: Connection, collection: Collection, question: Question, limit: int, asked: Filter
) -> tuple[Keys, Scores]:
    if not asked:
        return question.best(limit)
    filtered, values = conditions(collection, asked, "f")

    def named() -> Keys | None:
        rows = connection.execute(
            f"SELECT f.key FROM records f WHERE f.collection = %s AND f.user_id = %s{filtered} LIMIT %s",
            [collection.id, collection.user, *values, NAMED],
            binary=True,
            # A filter is planned for its own values: whether it is rare decides how to look.
            prepare=False,
        ).fetchall()
        return np.sort(np.array([key for (key,) in rows], np.int64)) if len(rows) < NAMED else None

    return best_passing(question, limit, named, partial(_passing, connection, collection, asked))


def _passing(connection: Connection, collection: Collection, asked: Filter, keys: Keys) -> Keys:
    filtered, values = conditions(collection, asked, "f")
    rows = connection.execute(
        f"SELECT f.key FROM records f WHERE f.key = ANY(%s) AND f.user_id = %s{filtered}",
        [keys.tolist(), collection.user, *values],
        binary=True,
        prepare=False,
    ).fetchall()
    return np.array([key for (key,) in rows], np.int64)


def _shown(connection: Connection, collection: Collection, keys: list[int], shown: str) -> dict[int, Row]:
    """Columns of records, by key."""
    rows = connection.execute(
        f"SELECT r.key, {shown} FROM records r WHERE r.key = ANY(%s) AND r.user_id = %s",
        (keys, collection.user),
        binary=True,
    ).fetchall()
    return {key: row for key, *row in rows}  # type: ignore[misc]


def _keyword_match(collection: str, row: Sequence[Any], held: tuple[str, ...]) -> KeywordMatch:
    found = match(collection, row, score=float(len(held)))
    return KeywordMatch(found.id, found.collection, None, found.metadata, found.text, found.score, held)


def _telling(keyword: str) -> list[str]:
    """The words that a text with this keyword has in the index: of Chinese its pairs, which say where it stands."""
    found = dict.fromkeys(tokens(keyword))
    return [word for word in found if len(word) > 1 or word.isascii()] or list(found)


def _pattern(keyword: str) -> str:
    """What ILIKE looks for; the keyword is data, whatever signs it holds."""
    plain = keyword if is_plain(keyword) else ""
    return "%" + plain.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_") + "%" if plain else ""
