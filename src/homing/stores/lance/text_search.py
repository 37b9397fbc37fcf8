"""The rows that share words with a query, ranked by BM25, and what words are worth by how many texts hold them.

LanceDB weighs the words of a row by the texts that its index has, or, if the index lacks the row, by those and the
other rows that were searched: how well a text fits would depend on when it was written and on the filter. So where all
texts could be counted, what LanceDB found is weighed anew. Rows that no index has yet are searched as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from homing.stores.lance.database import Table, any_of
from homing.stores.lance.engine import Reader, part, run
from homing.stores.lance.reading import Found, pages
from homing.stores.lance.rows import STORED

TEXTS = 2_000
"""Texts that are read, at most …"""
CHARACTERS = 2_000_000
"""… and characters of their words."""
HELD = 500_000
"""Characters of words up to which all texts are kept in memory: then LanceDB is not asked for what holds some."""
STRETCH = 50
"""Texts of a larger collection that are read in a row."""
COMMITS = 100
GROWTH = 0.1
"""A larger collection is read anew after so many commits, or when it has grown or shrunk by so much."""
K1 = 1.2
B = 0.75
"""Of BM25, as LanceDB has them."""


@dataclass(frozen=True, slots=True)
class Held:
    """What is kept of a record in memory: how often each word stands in it, and its row without vectors."""

    counts: Counter[str]
    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of `texts` texts, as of a commit; `read` of them were read, and so many of those hold a word."""

    version: int
    texts: int
    read: int
    words: int
    holders: Mapping[str, int]
    held: Mapping[str, Held] | None = None
    """Every text by its id, where those are few."""

    @property
    def exact(self) -> bool:
        """Whether all texts were read."""
        return self.read == self.texts

    def idf(self, holders: float) -> float:
        """What a word is worth that so many texts hold."""
        texts = max(1, self.texts)
        held = min(holders, texts)
        return math.log(1 + (texts - held + 0.5) / (held + 0.5))

    def frequency(self, term: str) -> float:
        """About how many texts hold a word."""
        return self.holders.get(term, 0) * self.texts / max(1, self.read)

    def best(self, terms: Sequence[str], limit: int) -> list[tuple[str, float]]:
        """The most relevant of the texts that are held, by BM25 and then id."""
        assert self.held is not None
        asked = [term for term in terms if term in self.holders]
        found = ((name, self.bm25(one.counts, asked)) for name, one in self.held.items())
        return sorted((one for one in found if one[1] > 0), key=lambda one: (-one[1], one[0]))[:limit]

    def bm25(self, counts: Counter[str], terms: Sequence[str]) -> float:
        """Of a text with these words, such that a term brings at most its idf."""
        held = [term for term in terms if term in counts]
        if not held:
            return 0.0
        mean = self.words / max(1, self.read) or 1
        slack = K1 * (1 - B + B * counts.total() / mean)
        return sum(self.idf(self.frequency(term)) * counts[term] / (counts[term] + slack) for term in held)

    def mass(self, terms: Sequence[str], found: Sequence[str]) -> float:
        """What all terms are worth, given the words of texts that a search for them found.

        A word that was not read in any text has at least those; texts with a rare word are among the first.
        """
        asked = set(terms)
        seen = Counter(term for words in found for term in asked.intersection(words.split()))
        return sum(self.idf(max(self.frequency(term), seen[term])) for term in terms)


class WordStatistics:
    """How many texts of a table hold a word, as was read of it.

    LanceDB does not tell, and asking it for each word of a query would cost more than the search. So texts are read.
    While they are few, all of them are: then everything is exact. Of a larger collection some are read, from
    everywhere; a word that those do not hold is rare or unknown.
    """

    def __init__(self) -> None:
        self._read: WeakKeyDictionary[Table, Statistics] = WeakKeyDictionary()

    def of(self, table: Table) -> Statistics:
        """The statistics of a table as it is now, or, where they are not exact, as it was a little while ago."""
        known = self._read.get(table)
        if known is None or not _holds(known, table.reader):
            known = self._read[table] = _read(table.frozen_reader())
        return known

    def held(self, table: Table) -> Mapping[str, Held] | None:
        """Every record of a table, if a search has read them all since the last commit."""
        known = self._read.get(table)
        if known is None or known.held is None or not _holds(known, table.reader):
            return None
        return known.held


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


def _holds(known: Statistics, reader: Reader) -> bool:
    commits: int = run(reader.version()) - known.version
    if commits == 0 or known.exact or commits > COMMITS:
        return commits == 0
    texts: int = run(reader.count_rows())
    return abs(texts - known.texts) <= GROWTH * known.texts


def _read(reader: Reader) -> Statistics:
    version, texts = run(reader.version()), run(reader.count_rows())
    holders: Counter[str] = Counter()
    held: dict[str, Held] = {}
    read = words = characters = 0
    for row in _texts(reader, texts):
        counts = Counter(row["words"].split())
        holders.update(counts.keys())
        words += counts.total()
        read += 1
        characters += len(row["words"])
        if characters <= HELD:
            held[row["id"]] = Held(counts, {name: row[name] for name in STORED})
        if characters > CHARACTERS:
            break
    # A key that is there twice (written around us) is one text.
    return Statistics(version, texts, read, words, holders, held if len(held) == read == texts else None)


def _texts(reader: Reader, texts: int) -> Iterator[dict[str, Any]]:
    """The rows of all texts, or of stretches of them that lie equally far apart; some in memory at a time."""
    if texts <= TEXTS:
        query = reader.query()
    else:
        stretches = TEXTS // STRETCH
        starts = [number * (texts - STRETCH) // (stretches - 1) for number in range(stretches)]
        query = reader.take_offsets([start + at for start in starts for at in range(STRETCH)])
    batches = run(query.select([*STORED, "words"]).to_batches(max_batch_length=STRETCH))
    while (batch := run(_next(batches))) is not None:
        yield from batch.to_pylist()


async def _next(batches: Any) -> Any:
    return await anext(batches, None)
