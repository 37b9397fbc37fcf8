"""The nearest records, and only those that a filter lets through."""

from __future__ import annotations

import numpy as np
import pytest

from homing.records import VectorRecord
from homing.stores.store import MAX_LIMIT, Store
from homing.testing.store_contract.samples import MODEL, WIDTH, Opened, ids, only, record, vector


class NearnessContract(Opened):
    """Search by vector, and metadata filters."""

    def test_matches_come_by_distance_which_is_one_minus_cosine(self, store: Store) -> None:
        store.upsert([record("far", -1), record("near", 2, 0), record("side", 0, 5), record("between", 1, 1)])
        found = store.search("things", vector(9))
        assert ids(found) == ["near", "between", "side", "far"]
        assert [match.distance for match in found] == pytest.approx([0, 1 - 2**-0.5, 1, 2], abs=1e-5)
        assert all(match.collection == "things" for match in found)

    def test_equal_distances_come_by_id(self, store: Store) -> None:
        names = [f"{number * 37 % 200:03d}" for number in range(200)]
        store.upsert([record(name, 1, 1) for name in names])
        assert ids(store.search("things", vector(1), limit=7)) == [f"{number:03d}" for number in range(7)]

    def test_the_limit_is_kept(self, store: Store) -> None:
        store.upsert([record(f"{number:02d}", 1, number / 50) for number in range(50)])
        assert ids(store.search("things", vector(1), limit=3)) == ["00", "01", "02"]
        assert len(store.search("things", vector(1))) == 10
        assert len(store.search("things", vector(1), limit=MAX_LIMIT)) == 50
        assert store.search("things", vector(1), limit=0) == []

    def test_the_nearest_are_found_among_many(self, store: Store) -> None:
        made = np.random.default_rng(7)
        rows = made.standard_normal((3000, WIDTH)).astype(np.float32)
        store.upsert([VectorRecord(f"{n:04d}", "things", row, {}, "", MODEL) for n, row in enumerate(rows)])
        units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        for query in made.standard_normal((20, WIDTH)).astype(np.float32):
            best = np.argsort(-(units @ query), kind="stable")[:10]
            assert ids(store.search("things", query)) == [f"{n:04d}" for n in best]

    def test_a_search_shows_text_and_metadata(self, store: Store) -> None:
        store.upsert([record("a", 1, text="卧室灯 📎", room="卧室", tags=["x", "y"])])
        [match] = store.search("things", vector(1))
        assert (match.text, match.metadata) == ("卧室灯 📎", {"room": "卧室", "tags": ["x", "y"]})

    def test_a_filter_compares_value_and_type(self, store: Store) -> None:
        store.upsert(
            [record("int", 1, v=1), record("text", 1, v="1"), record("true", 1, v=True), record("null", 1, v=None)]
        )
        for value, name in ((1, "int"), ("1", "text"), (True, "true"), (None, "null")):
            assert ids(store.search("things", vector(1), options=only(v=value))) == [name]
        assert store.search("things", vector(1), options=only(v=False)) == []
        assert store.search("things", vector(1), options=only(missing=None)) == []

    def test_a_list_in_the_metadata_matches_by_each_item(self, store: Store) -> None:
        store.upsert([record("a", 1, text="灯", tags=["红", "x"]), record("b", 1, text="灯", tags=["蓝"])])
        assert ids(store.search("things", vector(1), options=only(tags="红"))) == ["a"]
        assert ids(store.search_text("things", "灯", options=only(tags="蓝"))) == ["b"]

    def test_a_list_in_the_filter_means_any_of_these(self, store: Store) -> None:
        store.upsert(
            [record("a", 1, k="x"), record("b", 1, k="y"), record("c", 1, k="z"), record("d", 1, k=["x", "y"])]
        )
        assert ids(store.search("things", vector(1), options=only(k=["x", "y"]))) == ["a", "b", "d"]
        assert store.search("things", vector(1), options=only(k=[])) == []

    def test_every_pair_of_a_filter_must_match(self, store: Store) -> None:
        store.upsert(
            [record("a", 1, text="灯", k="x", n=1), record("b", 1, text="灯", k="x", n=2), record("c", 1, k="y", n=1)]
        )
        assert ids(store.search("things", vector(1), options=only(k="x", n=1))) == ["a"]
        assert ids(store.search_text("things", "灯", options=only(k="x", n=2))) == ["b"]

    def test_long_and_strange_values_are_compared_too(self, store: Store) -> None:
        long, quoted = "很长" * 500, 'it\'s "so" 100% _ \\ \n; DROP TABLE records --'
        store.upsert(
            [
                record("a", 1, v=long),
                record("b", 1, v=long + "!"),
                VectorRecord("c", "things", vector(1), {"v": quoted, "k'\" ]": 1}, "", MODEL),
            ]
        )
        assert ids(store.search("things", vector(1), options=only(v=long))) == ["a"]
        assert ids(store.search("things", vector(1), options=only(v=quoted))) == ["c"]
        assert ids(store.search("things", vector(1), options=only(**{"k'\" ]": 1}))) == ["c"]

    @pytest.mark.parametrize("rare", [3, 400])
    def test_a_filter_never_comes_back_empty_because_its_records_are_far_away(self, store: Store, rare: int) -> None:
        near = [record(f"near{number:04d}", 1, number / 9000, text="灯", who="many") for number in range(3000)]
        far = [record(f"far{number:04d}", -1, number / 100, text="灯", who="few") for number in range(rare)]
        store.upsert(near + far)
        expected = [f"far{number:04d}" for number in reversed(range(rare))][:10]
        assert ids(store.search("things", vector(1), options=only(who="few"))) == expected
        assert len(store.search_text("things", "灯", options=only(who="few"))) == min(rare, 10)
