"""What the two legs say: search_vector, search_words, measure."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.stores.lance import LanceStore, text_search
from homing.stores.store import Store
from homing.testing.store_contract import OpenStore, only, record, vector
from homing.testing.store_contract.samples import Opened


class TestLegs(Opened):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: LanceStore(tmp_path / "contract")

    TEXTS = ("打开卧室的灯", "关闭卧室的灯", "git commit 提交代码", "read the temperature 温度", "灯 灯 灯 lamp")

    @pytest.fixture
    def filled(self, store: Store) -> Store:
        store.write([record(str(at), 1, at / 2, text=text, n=at) for at, text in enumerate(self.TEXTS)])
        store.write([record("pending", text="还没有向量的灯", n=0)])
        return store

    def test_equal_relevance_comes_by_id(self, store: Store) -> None:
        names = [f"{number * 37 % 200:03d}" for number in range(200)]
        store.write([record(name, 1, 1, text="一样的话") for name in names])
        expected = [f"{number:03d}" for number in range(7)]
        assert [one.id for one in store.search_words("things", "一样", 7).found] == expected
        assert [one.id for one in store.search_vector("things", vector(1), 7)] == expected

    def test_a_rare_word_weighs_more_than_a_frequent_one_and_an_unknown_one_no_less(self, store: Store) -> None:
        store.write([record(f"{n:03d}", text=f"common w{n}" + (" half" if n % 2 else "")) for n in range(200)])
        mass = {word: store.search_words("things", word, 5).mass for word in ("common", "half", "w17", "nowhere")}
        rarest = store.search_words("things", "half", 5).rarest
        assert mass["common"] < mass["half"] < mass["w17"] <= mass["nowhere"]
        assert mass["w17"] == pytest.approx(rarest)
        both = store.search_words("things", "half w17 nowhere", 5).mass
        assert both == pytest.approx(mass["half"] + mass["w17"] + mass["nowhere"])

    def test_a_word_brings_at_most_its_weight(self, store: Store) -> None:
        store.write([record("a", text="灯 " * 400), record("b", text="lamp")])
        store.write([record(f"{n:03d}", text=f"text number {n}") for n in range(60)])
        words = store.search_words("things", "灯 lamp", 5)
        assert [one.id for one in words.found] == ["a", "b"]
        assert all(0 < one.bm25 <= words.rarest for one in words.found)
        assert words.found[0].bm25 > 0.5 * words.rarest

    def test_it_does_not_matter_when_a_text_was_written(self, store: Store) -> None:
        for number in range(12):
            store.write([record(f"{number:02d}", text=f"same length w{number}")])
        store.write([record(f"{number:02d}", text=f"same length w{number}") for number in range(12, 80)])
        rarest = store.search_words("things", "w0", 5).rarest
        scores = [store.search_words("things", f"w{number}", 1).found[0].bm25 for number in (0, 5, 11, 40, 79)]
        assert scores == pytest.approx([scores[0]] * 5, rel=0.01)
        assert scores[0] == pytest.approx(0.45 * rarest, rel=0.05)

    def test_a_filter_does_not_change_what_a_word_is_worth(self, filled: Store) -> None:
        every = {one.id: one.bm25 for one in filled.search_words("things", "卧室的灯", 10).found}
        some = filled.search_words("things", "卧室的灯", 10, only(n=1))
        assert {one.id: one.bm25 for one in some.found} == {"1": pytest.approx(every["1"])}
        assert some.mass == filled.search_words("things", "卧室的灯", 10).mass


def test_a_large_collection_is_weighed_by_some_of_its_texts(store: LanceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"common w{n} {'third ' if n % 3 == 0 else ''}{'tenth ' if n % 10 == 0 else ''}x" for n in range(3_000)]
    store.write([record(f"{n:04d}", text=text) for n, text in enumerate(texts)])
    queries = ("third w1500 nowhere", "tenth common", "w2500", "nowhere else")
    monkeypatch.setattr(text_search, "TEXTS", 3_000)
    with_all = [store.search_words("things", query, 10) for query in queries]
    store.delete("things", ["0000"])  # a commit: what was counted does not hold any more
    monkeypatch.setattr(text_search, "TEXTS", 200)
    estimated = [store.search_words("things", query, 10) for query in queries]
    for exact, estimate in zip(with_all, estimated, strict=True):
        assert estimate.mass == pytest.approx(exact.mass, rel=0.1)
        assert estimate.rarest == pytest.approx(exact.rarest, rel=0.01)
        expected = [one.bm25 for one in exact.found]
        assert [one.bm25 for one in estimate.found] == pytest.approx(expected, rel=0.02)
