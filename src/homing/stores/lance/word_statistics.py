"""How many texts of a collection hold a word, and what words are worth by that.

LanceDB does not tell, and asking it for each word of a query would cost more than the search. So texts are read. While
they are few, all of them are: then everything here is exact. Of a larger collection some are read, from everywhere; a
word that those do not hold is rare or unknown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from homing.stores.lance.engine import Reader, run
from homing.stores.lance.rows import STORED
from homing.stores.lance.table import Table

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
    """Remembers what was read of each table."""

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
