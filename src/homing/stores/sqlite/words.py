"""The keyword index: FTS5 tables that hold the words of the records, and what is found in them, ranked by BM25.

BM25 weighs a word by how many texts of its table have it, so collections get tables of their own; only beyond `TABLES`
collections are tables shared, because every table has to be read whenever the file is opened. In a shared table a
collection is a range of keys, and a search reads no further than that.

Scoring a text costs about a microsecond, so in a large collection a word that half of the texts have would cost a
second and say nothing. There, rare words lead: texts with a rare word and a frequent one come first, then texts with a
rare word, then the newest of those with frequent words only. Up to `BUDGET` records, and for queries whose words are
all rare, there is one step: plain BM25 over everything.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import apsw

from homing.database import Row
from homing.database.sqlite.database import rows
from homing.stores.filters import Filter
from homing.stores.sqlite import reading
from homing.stores.sqlite.reading import Collection, Estimates
from homing.stores.store import Worded, Words
from homing.text.tokens import FTS5_TOKENIZE, query_terms

log = logging.getLogger(__name__)

TABLES = 32
"""Keyword tables in a file, at most."""
RANGE = 2**40
"""Keys of a collection: its id times this, and up. More than it will ever use."""
MERGED_PAGES = 16
"""Pages of the index that a removal writes anew at most, beside one for every eight removed texts."""

BUDGET = 20_000
"""Texts that one step scores, at most."""
NAMED = 4_000
"""Records of a filter up to which they are named, which makes asking whether a text passes four times cheaper."""

K1 = 1.2
"""FTS5's own: a term brings at most `K1 + 1` times its idf."""
LEAST_IDF = 1e-6
"""What FTS5 makes of the idf of a term that most texts hold."""


def table(collection: int) -> str:
    """The table with the words of a collection. `…_terms` tells how many texts hold each term, and takes no room."""
    return f"keywords_{collection % TABLES}"


def first_key(collection: int) -> int:
    """Where the keys of a collection begin; they end where those of the next would."""
    return collection * RANGE


def create(connection: apsw.Connection, collection: int) -> None:
    """Make the table of a new collection, unless it shares one."""
    name = table(collection)
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {name} USING fts5("
        f"""words, content='', contentless_delete=1, tokenize="{FTS5_TOKENIZE}")"""
    )
    connection.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS {name}_terms USING fts5vocab({name}, row)")


def add(connection: apsw.Connection, collection: int, words: Iterable[tuple[int, str]]) -> None:
    """Write the words of records, by key."""
    connection.executemany(f"INSERT INTO {table(collection)}(rowid, words) VALUES (?, ?)", words)


def remove(connection: apsw.Connection, collection: int, keys: Iterable[Row]) -> None:
    """Take records out."""
    connection.executemany(f"DELETE FROM {table(collection)} WHERE rowid = ?", keys)


def merge(connection: apsw.Connection, collection: int, removed: int) -> None:
    """Write a part of the index anew, where one text in ten was removed: their words stay in it until that is done."""
    name = table(collection)
    connection.execute(f"INSERT INTO {name}({name}, rank) VALUES ('merge', ?)", (MERGED_PAGES + removed // 8,))


def drop(connection: apsw.Connection, collection: int) -> None:
    """Drop the table of a collection that has no records any more, unless it shares one."""
    sharing = rows(connection, f"SELECT 1 FROM collections WHERE id % {TABLES} = ? LIMIT 2", (collection % TABLES,))
    if len(sharing) < 2:
        connection.execute(f"DROP TABLE IF EXISTS {table(collection)}_terms")
        connection.execute(f"DROP TABLE IF EXISTS {table(collection)}")


def refresh(connection: apsw.Connection) -> None:
    """Let this connection see what others wrote: FTS5 checks a table with what it remembers from its last question."""
    tables = rows(connection, "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%fts5(words%'")
    for (name,) in tables:
        # One that is damaged is for the check to tell.
        with suppress(apsw.Error):
            rows(connection, f"SELECT rowid FROM {name}('a') LIMIT 1")


def places(connection: apsw.Connection, collection: int) -> str:
    """A table of every place of every term in a keyword table."""
    name = f"temp.{table(collection)}_places"
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {name} USING fts5vocab(main, {table(collection)}, instance)"
    )
    return name


def search(
    connection: apsw.Connection, collection: Collection, query: str, limit: int, asked: Filter, estimates: Estimates
) -> Words:
    """The `limit` most relevant, if so many exist, the best first, ties by id, and what the words are worth.

    BM25 is counted such that a term brings at most its idf.
    """
    terms = query_terms(query)
    holders = _holders(connection, collection, terms)
    found: dict[str, float] = {}
    if terms:
        statement, bindings = _ranked(connection, collection, asked, estimates)
        for expression in _steps(terms, holders, collection.records):
            # What an earlier step found stays ahead of what a later one adds.
            highest = min(found.values(), default=math.inf)
            most = limit + len(found)
            log.debug("%s", statement, extra={"sql": statement})
            for name, score in rows(connection, statement, (expression, *bindings, max(BUDGET, most), most, most)):
                found.setdefault(name, min(score, highest))
            if len(found) >= limit:
                break
    order = sorted([(-score, name) for name, score in found.items()])[:limit]
    return Words(
        tuple([Worded(name, -score / (K1 + 1)) for score, name in order]),
        sum([_idf(collection.records, holders.get(term, 0)) for term in terms]),
        _idf(collection.records, 1),
        collection.records,
    )


def measure(connection: apsw.Connection, collection: Collection, query: str, keys: Sequence[int]) -> dict[int, float]:
    """The BM25 of those of these records that share a word with the query, by key."""
    terms = query_terms(query)
    if not terms or not keys:
        return {}
    name = table(collection.id)
    found = rows(
        connection,
        f"SELECT rowid, -bm25({name}) FROM {name} WHERE {name} MATCH ? AND +rowid IN (SELECT value FROM json_each(?))",
        (_joined(terms, "OR"), json.dumps(list(keys))),
    )
    return {key: score / (K1 + 1) for key, score in found}


def _holders(connection: apsw.Connection, collection: Collection, terms: Sequence[str]) -> dict[str, int]:
    """How many texts hold each of these terms, of those that any holds."""
    if not terms:
        return {}
    sql = f"SELECT term, doc FROM {table(collection.id)}_terms WHERE term IN (SELECT value FROM json_each(?))"
    return dict(rows(connection, sql, (json.dumps(terms),)))


def _idf(texts: int, holders: int) -> float:
    return max(LEAST_IDF, math.log(max(texts - holders + 0.5, 0.5) / (holders + 0.5)))


def _ranked(
    connection: apsw.Connection, collection: Collection, asked: Filter, estimates: Estimates
) -> tuple[str, list[reading.Binding]]:
    """The best (id, score) for an expression; which of those that tie at the end belong to it is decided by ids."""
    name, start = table(collection.id), first_key(collection.id)
    estimate = estimates.of(connection, collection.id, collection.records, asked)
    lead = estimate.pair if estimate.count <= NAMED else None
    # The plus keeps SQLite from running the whole query once for every record that passes.
    passes, bindings = reading.conditions(collection.id, asked, f"+{name}.rowid", lead)
    statement = (
        f"WITH scored AS MATERIALIZED (SELECT rowid AS key, -bm25({name}) AS score FROM {name} WHERE {name} MATCH ? "
        f"AND rowid >= {start} AND rowid < {start + RANGE}{passes} ORDER BY rowid DESC LIMIT ?) "
        "SELECT r.id, s.score FROM scored s JOIN records r ON r.key = s.key WHERE s.score >= "
        "(SELECT min(score) FROM (SELECT score FROM scored ORDER BY score DESC LIMIT ?)) "
        "ORDER BY s.score DESC, r.id LIMIT ?"
    )
    return statement, bindings


def _steps(terms: Sequence[str], holders: Mapping[str, int], texts: int) -> Iterator[str]:
    """The expressions to try, one after the other, until there are enough matches."""
    rare, frequent = _by_frequency(terms, holders) if texts > BUDGET else (terms, [])
    if rare and frequent:
        yield f"({_joined(rare, 'OR')}) AND ({_joined(frequent, 'OR')})"
    if rare:
        yield _joined(rare, "OR")
    if len(frequent) > 1:
        yield _joined(frequent, "AND")
    if frequent:
        yield _joined(frequent, "OR")


def _by_frequency(terms: Sequence[str], holders: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """The rare terms, which together occur in no more texts than may be scored, and the others."""
    rare: list[str] = []
    scored = 0
    for term in sorted(terms, key=lambda term: holders.get(term, 0)):
        scored += holders.get(term, 0)
        if scored <= BUDGET:
            rare.append(term)
    return rare, [term for term in terms if term not in rare]


def _joined(terms: Sequence[str], operator: str) -> str:
    # Terms hold no quote (see homing.text.tokens); quoted, each is a word and never an operator.
    return f" {operator} ".join([f'"{term}"' for term in terms])
