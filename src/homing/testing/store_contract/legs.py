"""What each leg finds, measured so that the two can be put together."""

from __future__ import annotations

import pytest

from homing.errors import DimensionMismatch, ModelMismatch, StoreError
from homing.records import text_hash
from homing.stores.store import MAX_LIMIT, NewVector, SearchOptions, Store, Words
from homing.testing.store_contract.samples import MODEL, Opened, ids, only, record, vector


class LegsContract(Opened):
    """Searching by vector and by words without reading the records, measuring, and reading texts only."""

    @pytest.fixture
    def filled(self, store: Store) -> Store:
        """A store with records that have a vector, words, both, or neither."""
        store.write(
            [
                record("both", 1, 0, text="打开卧室的灯 lamp", room="卧室"),
                record("twin", 1, 0, text="打开卧室的灯 lamp", room="客厅"),
                record("near", 1, 0.5, text="关闭窗户", room="卧室"),
                record("far", -1, text="读取温度 temperature lamp", room="客厅"),
                record("words", text="卧室的温度 lamp lamp", room="卧室"),
                record("bare", text=""),
            ]
        )
        return store

    def test_the_nearest_come_with_their_cosines(self, filled: Store) -> None:
        found = filled.search_vector("things", vector(2), 10)
        assert [one.id for one in found] == ["both", "twin", "near", "far"]
        assert [one.cosine for one in found] == pytest.approx([1, 1, 0.8**0.5, -1], abs=1e-6)
        assert [one.id for one in found] == ids(filled.search("things", vector(2)))
        assert [one.id for one in filled.search_vector("things", vector(2), 1)] == ["both"]
        assert [one.id for one in filled.search_vector("things", vector(2), 9, only(room="客厅"))] == ["twin", "far"]
        assert filled.search_vector("things", vector(2), 0) == []
        assert filled.search_vector("nothing", vector(2), 10) == []

    def test_a_query_of_another_model_is_refused(self, filled: Store) -> None:
        assert filled.search_vector("things", vector(1), 1, SearchOptions(model=MODEL))
        with pytest.raises(ModelMismatch):
            filled.search_vector("things", vector(1), 1, SearchOptions(model="another@8"))
        with pytest.raises(DimensionMismatch):
            filled.search_vector("things", vector(1)[:3], 1)
        with pytest.raises(DimensionMismatch):
            filled.measure("things", ["both"], vector=vector(1)[:3])

    def test_records_that_share_words_come_by_relevance_and_then_by_id(self, filled: Store) -> None:
        found = filled.search_words("things", "卧室的灯 lamp", 10).found
        assert [one.id for one in found] == ids(filled.search_text("things", "卧室的灯 lamp"))
        assert [one.id for one in found][:2] == ["both", "twin"]
        assert found[0].bm25 == found[1].bm25 > found[-1].bm25 > 0
        assert filled.search_words("things", "卧室的灯 lamp", 1).found == found[:1]
        narrowed = filled.search_words("things", "卧室的灯 lamp", 10, only(room="客厅")).found
        assert {one.id: one.bm25 for one in narrowed} == {
            one.id: one.bm25 for one in found if one.id in ("twin", "far")
        }

    def test_the_words_of_a_query_have_a_mass(self, filled: Store) -> None:
        def mass(query: str, **narrowed: str) -> float:
            return filled.search_words("things", query, 10, only(**narrowed)).mass

        rarest = filled.search_words("things", "lamp", 10).rarest
        assert mass("temperature") == pytest.approx(rarest)
        assert mass("lamp") < rarest < mass("nowhere")
        assert mass("lamp temperature nowhere") == pytest.approx(mass("lamp") + mass("temperature") + mass("nowhere"))
        assert mass("lamp temperature", room="nowhere") == pytest.approx(mass("lamp temperature"))
        assert mass("，。") == 0
        assert filled.search_words("things", "lamp temperature", 10).rarest == pytest.approx(rarest)
        assert filled.search_words("nothing", "lamp", 10) == Words()

    def test_measuring_agrees_with_both_legs(self, filled: Store) -> None:
        near = {one.id: one.cosine for one in filled.search_vector("things", vector(1, 2), MAX_LIMIT)}
        worded = {one.id: one.bm25 for one in filled.search_words("things", "卧室 温度 lamp", MAX_LIMIT).found}
        asked = ["words", "far", "gone", "bare", "both", "near", "twin"]
        found = filled.measure("things", asked, vector=vector(1, 2), query="卧室 温度 lamp")
        assert [one.id for one in found] == ["words", "far", "bare", "both", "near", "twin"]
        assert {one.id: one.cosine for one in found if one.cosine is not None} == pytest.approx(near)
        assert {one.id: one.bm25 for one in found if one.bm25} == pytest.approx(worded)
        for one in found:
            assert [one] == filled.measure("things", [one.id], vector=vector(1, 2), query="卧室 温度 lamp")

    def test_measuring_needs_neither_a_vector_nor_a_query(self, filled: Store) -> None:
        [words] = filled.measure("things", ["both"], query="lamp")
        assert words.cosine is None
        assert words.bm25 > 0
        [near] = filled.measure("things", ["both"], vector=vector(1))
        assert near.cosine == pytest.approx(1.0)
        assert near.bm25 == 0.0
        assert filled.measure("things", []) == []
        assert filled.measure("nothing", ["both"], vector=vector(1), query="lamp") == []

    def test_texts_are_read_by_id(self, filled: Store) -> None:
        filled.write([record("strange", text="a\0b \ud800 '\"")])
        assert filled.texts("things", ["strange", "near", "gone"]) == {"strange": "a\0b \ud800 '\"", "near": "关闭窗户"}
        assert filled.texts("things", []) == {}
        assert filled.texts("nothing", ["near"]) == {}

    def test_a_closed_store_answers_nothing(self, filled: Store) -> None:
        filled.close()
        for call in (
            lambda: filled.write([record("a")]),
            lambda: filled.texts("things", ["both"]),
            lambda: filled.search_vector("things", vector(1), 1),
            lambda: filled.search_words("things", "lamp", 1),
            lambda: filled.measure("things", ["both"], query="lamp"),
            lambda: filled.put_vectors("things", MODEL, [NewVector("bare", text_hash(""), vector(1))]),
            lambda: filled.models("things"),
            lambda: filled.model_of("things"),
            lambda: filled.missing("things", MODEL),
            lambda: filled.serve("things", MODEL),
            lambda: filled.discard("things", MODEL),
        ):
            with pytest.raises(StoreError):
                call()
