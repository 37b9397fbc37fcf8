"""The keyword index: exact, whatever was written, removed and joined, in whatever order, by whomever."""

from __future__ import annotations

import gc
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.database.sqlite.database import KEPT
from homing.errors import StoreCorrupt
from homing.records import VectorRecord
from homing.stores import SearchOptions
from homing.stores.postings import index, question, segment, tables
from homing.stores.postings.index import Part, View
from homing.stores.postings.question import Question
from homing.stores.sqlite import SqliteStore, words
from homing.text.terms import numbers_of
from homing.text.tokens import query_terms, tokens

WORDS = [
    "灯塔",
    "孤独",
    "提交",
    "代码",
    "打开",
    "设备",
    "lamp",
    "keeper",
    "commit",
    "lonely",
    "device",
    "２０２４",
    "🙂",
    "燈塔",
]
QUERIES = ["灯塔", "灯塔 lamp 孤独的人", "commit 代码", "nowhere", "🙂 2024", "燈塔 keeper 提交代码 device 打开设备"]


def built(texts: Iterable[tuple[int, Sequence[str]]]) -> segment.Segment:
    return segment.segment_of([(key, numbers_of(said)) for key, said in texts])


def bm25(texts: Mapping[str, str], query: str) -> dict[str, float]:
    """What each text scores, by going through all of them."""
    counts = {name: Counter(tokens(text)) for name, text in texts.items()}
    mean = max(1.0, sum(one.total() for one in counts.values()) / max(1, len(counts)))
    found: dict[str, float] = {}
    for term in query_terms(query):
        holders = sum(term in one for one in counts.values())
        idf = max(1e-6, math.log(max(len(counts) - holders + 0.5, 0.5) / (holders + 0.5)))
        for name, one in counts.items():
            if term in one:
                norm = 1.2 * (0.25 + 0.75 * one.total() / mean)
                found[name] = found.get(name, 0.0) + idf * one[term] / (one[term] + norm)
    return found


def best(
    texts: Mapping[str, str], query: str, limit: int, among: frozenset[str] | None = None
) -> list[tuple[str, float]]:
    found = [(name, score) for name, score in bm25(texts, query).items() if among is None or name in among]
    return sorted(found, key=lambda one: (-one[1], one[0]))[:limit]


def answer(
    store: SqliteStore, query: str, limit: int, pairs: Mapping[str, object] | None = None
) -> list[tuple[str, float]]:
    found = store.search_words("c", query, limit, SearchOptions(pairs or {})).found
    return sorted(((one.id, one.bm25) for one in found), key=lambda one: (-one[1], one[0]))


def written(made: random.Random) -> str:
    return " ".join(made.choices(WORDS, k=made.randint(0, 12)))


def record(name: str, text: str) -> VectorRecord:
    return VectorRecord(name, "c", None, {"mod": int(name) % 3, "even": int(name) % 2 == 0}, text)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "x.db")
    yield opened
    opened.close()


TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8), min_size=1, max_size=12)


@pytest.mark.slow
@given(st.lists(TEXTS, min_size=1, max_size=4), st.sets(st.integers(0, 30)), st.booleans())
def test_joined_segments_say_what_their_texts_say(
    given_texts: list[list[list[str]]], removed: set[int], backwards: bool
) -> None:
    numbered = iter(range(100))
    batches = [[(next(numbered), words_) for words_ in batch] for batch in given_texts]
    parts = [built(batch) for batch in (reversed(batches) if backwards else batches)]
    gone = np.array(sorted(removed), np.int64)
    joined = segment.join(parts, gone)
    again = segment.whole(segment.unpack(segment.pack(joined.header)), map(segment.unpack_piece, joined.pieces()))
    left = {
        key: segment.counted(numbers_of(words_)) for batch in batches for key, words_ in batch if key not in removed
    }
    assert dict(again.contents()) == left
    lengths = {key: len(words_) for batch in batches for key, words_ in batch}
    assert again.header.lengths.tolist() == [lengths[key] for key in left]


def test_damaged_rows_are_refused() -> None:
    made = built([(1, ["a", "b"])])
    for stored in (segment.pack(made.header), next(made.pieces()), segment.pack_keys(made.header.keys)):
        broken = stored[:-1] + bytes([stored[-1] ^ 1])
        for read in (segment.unpack, segment.unpack_piece, lambda one: segment.unpack_keys([one])):
            with pytest.raises(StoreCorrupt):
                read(broken)


def test_postings_of_several_pieces_are_read_as_one() -> None:
    made = random.Random(3)
    texts = {f"{number:03d}": written(made) for number in range(100)}
    made_of = built([(int(name), tokens(text)) for name, text in texts.items()])
    made_of = segment.Segment(replace(made_of.header, piece=7), made_of.postings)
    pieces = list(made_of.pieces())
    assert max(len(segment.unpack_piece(one).slots) for one in pieces) == 7
    view = View([Part.of(1, segment.unpack(segment.pack(made_of.header)), np.zeros(0, np.int64))])
    for query in QUERIES:
        asked = Question(
            view,
            query_terms(query),
            lambda wanted, _: [
                one
                for part, ranges in wanted
                for one in segment.lists_in(
                    part.header, ranges, {one: pieces[one] for one in part.header.pieces(ranges)}
                )
            ],
        )
        keys, scores = asked.best(5)
        found = {f"{key:03d}": score for key, score in zip(keys.tolist(), scores.tolist(), strict=True)}
        assert [score for _, score in best(texts, query, 5)] == pytest.approx(sorted(found.values(), reverse=True)[:5])
        assert asked.measure(keys).tolist() == pytest.approx(scores.tolist())


def test_segments_that_do_not_say_how_they_are_cut_are_read_as_the_first_ones_were() -> None:
    made_of = built([(number, ["lamp", f"w{number}"]) for number in range(30_000)])
    first = segment.Segment(replace(made_of.header, piece=20_000), made_of.postings)
    body = segment.pack(first.header)[4:-4]
    header = segment.unpack(crc32(body).to_bytes(4, "little") + body)
    assert header.piece == 20_000
    pieces = list(first.pieces())
    [(_, lamps)] = header.find(numbers_of(["lamp"]))
    [found] = segment.lists_in(header, [lamps], {one: pieces[one] for one in header.pieces([lamps])})
    assert found.slots.tolist() == list(range(30_000))


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [tables.AT_ONCE, 50])
def test_the_answer_is_that_of_scoring_every_text(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Through edits, removals and joins, in this store and in another one that follows; large joins are a thread's."""
    monkeypatch.setattr(tables, "AT_ONCE", at_once)
    other = SqliteStore(tmp_path / "x.db")
    made = random.Random(1)
    texts: dict[str, str] = {}
    for turn in range(60):
        chosen = {f"{made.randint(0, 299):03d}": written(made) for _ in range(made.choice([1, 1, 3, 40]))}
        store.write([record(name, text) for name, text in chosen.items()])
        texts |= chosen
        if turn % 3 == 2:
            gone = made.sample(sorted(texts), min(len(texts), made.choice([1, 5, 30])))
            store.delete("c", gone)
            texts = {name: text for name, text in texts.items() if name not in gone}
        if turn % 10 == 9:
            for query in QUERIES:
                for limit in (1, 5, 1000):
                    expected = best(texts, query, limit)
                    for found in (answer(store, query, limit), answer(other, query, limit)):
                        assert [name for name, _ in found] == [name for name, _ in expected]
                        assert [score for _, score in found] == pytest.approx([score for _, score in expected])
                for pairs in ({"mod": 1}, {"mod": 2, "even": True}, {"mod": {"$gte": 1}}):
                    passing = frozenset(name for name in texts if _passes(pairs, int(name)))
                    expected = best(texts, query, 7, passing)
                    assert [name for name, _ in answer(store, query, 7, pairs)] == [name for name, _ in expected]
    assert store.check() == other.check() == []
    with store.database.reading() as connection:
        assert len(words.tables(connection).segments(1)) < 30
    measured = store.measure("c", sorted(texts), query=QUERIES[1])
    assert {one.id: one.bm25 for one in measured if one.bm25} == pytest.approx(bm25(texts, QUERIES[1]))
    other.close()


def _passes(pairs: Mapping[str, object], number: int) -> bool:
    if isinstance(pairs["mod"], dict):
        return number % 3 >= 1
    return number % 3 == pairs["mod"] and pairs.get("even", number % 2 == 0) == (number % 2 == 0)


@pytest.mark.slow
def test_a_few_large_segments_are_left_of_many_small_ones(store: SqliteStore, tmp_path: Path) -> None:
    for start in range(0, 2_000, 5):
        store.write([record(f"{number}", f"灯塔 {number}") for number in range(start, start + 5)])
    store.close()
    again = SqliteStore(tmp_path / "x.db")
    with again.database.reading() as connection:
        found = words.tables(connection).segments(1)
    assert sum(texts for _, texts, _ in found) == 2_000
    assert len(found) <= 4 * index.FAN_OUT
    assert again.check() == []
    again.close()


def test_connections_that_were_closed_are_not_kept_by_what_was_asked(store: SqliteStore) -> None:
    store.write([VectorRecord("a", "c", None, {}, "灯塔 lamp")])
    with ExitStack() as readers:
        for _ in range(3 * KEPT):
            connection, collection = readers.enter_context(store._catalog.reading("c"))
            assert collection is not None
            assert words.search(connection, collection, "灯塔", 3, (), store._estimates, store._words).found
        del connection, collection
    gc.collect()
    assert len(store._catalog._known) <= KEPT


def test_what_is_held_of_the_words_before_a_write_is_let_go(store: SqliteStore) -> None:
    held = []
    for number in range(60):
        text = " ".join([*WORDS, str(number)])
        store.write([VectorRecord(f"{number % 5}", "c", None, {}, text)])
        for query in QUERIES:
            store.search_words("c", query, 3)
        held.append(len(store._words._cache._held))
    assert max(held[30:]) <= max(held[:30]) < 20 * len(WORDS)


def test_segments_that_are_read_for_the_weightier_terms_alone_miss_nothing(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every segment a group of its own, all but the first are pruned by what the first has found."""
    monkeypatch.setattr(index, "GROUP", 1)
    monkeypatch.setattr(index, "FAN_OUT", 100)
    monkeypatch.setattr(question, "COLUMNS", 8)
    made = random.Random(4)
    # Some words are rare and some common, as in a language.
    weights = [1 / (2 + 3 * rank) for rank in range(len(WORDS))]
    texts = {f"{number:03d}": " ".join(made.choices(WORDS, weights, k=made.randint(1, 9))) for number in range(400)}
    records = [record(name, text) for name, text in texts.items()]
    for start in range(0, len(records), 50):
        store.write(records[start : start + 50])
    gone = made.sample(sorted(texts), 40)
    store.delete("c", gone)
    texts = {name: text for name, text in texts.items() if name not in gone}
    for limit in (1, 1, 1, 3, 3, 3, 10, 10, 10):
        query = " ".join(made.sample(WORDS, 5))
        expected = best(texts, query, limit)
        found = answer(store, query, limit)
        assert [name for name, _ in found] == [name for name, _ in expected]
        assert [score for _, score in found] == pytest.approx([score for _, score in expected])
    every = bm25(texts, query)
    measured = {one.id: one.bm25 for one in store.measure("c", list(texts), query=query)}
    assert measured == pytest.approx({name: every.get(name, 0.0) for name in texts})
