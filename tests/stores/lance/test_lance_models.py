"""Vectors of several models side by side, where LanceDB has more to do than the contract asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from homing.errors import DimensionMismatch, InvalidArgument
from homing.records import VectorRecord, text_hash
from homing.stores.lance import LanceStore
from homing.stores.store import MAX_LIMIT, ModelInfo, NewVector, Store
from homing.testing.store_contract import MODEL, OpenStore, record, vector
from homing.testing.store_contract.samples import Opened
from tests.stores.lance.embedding import NEW, embed, made_of, models, new


class TestModels(Opened):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: LanceStore(tmp_path / "contract")

    @pytest.fixture
    def filled(self, store: Store) -> Store:
        """Three records with a vector of the first model and one without."""
        texts = {"a": "打开灯", "b": "关闭灯", "c": "read a file"}
        store.write([record(name, 1, at, text=text, n=at) for at, (name, text) in enumerate(texts.items())])
        store.write([record("z", text="只有关键词")])
        return store

    @pytest.mark.parametrize("change", [{"text": "别的"}, {"text": "打开灯", "keywords": "灯"}])
    def test_a_write_that_says_something_else_takes_them_away(self, filled: Store, change: dict[str, Any]) -> None:
        embed(filled)
        filled.write([record("a", **change)])
        assert models(filled) == [(MODEL, 2, True), (NEW, 3, False)]
        assert filled.missing("things", NEW) == ["a"]
        assert filled.missing("things", MODEL) == ["a", "z"]
        assert "a" not in {near.id for near in filled.search_vector("things", vector(1), 10)}
        assert [found.embedding for found in filled.get("things", ["a"])] == [None]
        assert filled.check() == []

    def test_pages_of_what_is_missing_are_all_of_it(self, store: Store) -> None:
        names = sorted(f"{number * 7919 % 1300:05d}" for number in range(1300))
        store.write([record(name, *([1.0] if int(name) % 3 else []), text=name) for name in names])
        found: list[str] = []
        while page := store.missing("things", MODEL, after=found[-1] if found else "", limit=100):
            found += page
        assert found == [name for name in names if int(name) % 3 == 0]

    def test_a_model_can_serve_while_some_lack_its_vectors(self, filled: Store) -> None:
        filled.put_vectors("things", NEW, [new("c", "read a file")])
        filled.serve("things", NEW)
        assert [near.id for near in filled.search_vector("things", made_of("x"), 10)] == ["c"]
        assert embed(filled) == {"a", "b", "z"}
        assert len(filled.search_vector("things", made_of("x"), 10)) == 4

    def test_a_model_whose_vectors_are_all_gone_makes_room_for_the_next(self, store: Store) -> None:
        store.write([record("a", 1, text="打开灯")])
        store.write([record("a", text="关闭灯")])
        assert (store.model_of("things"), store.models("things")) == ("", [])
        assert store.put_vectors("things", NEW, [new("a", "关闭灯")]) == {"a"}
        assert models(store) == [(NEW, 1, True)]
        store.write([record("a", 1, text="打开灯")])
        assert models(store) == [(MODEL, 1, True)]
        store.write([VectorRecord("a", "things", np.ones(3, np.float32), {}, "x", MODEL)])
        assert store.models("things") == [ModelInfo(MODEL, 3, 1, True)]
        assert store.check() == []

    def test_three_models_at_once(self, filled: Store) -> None:
        embed(filled)
        embed(filled, "contract/third@3", 3)
        assert sorted(models(filled)[1:]) == [(NEW, 4, False), ("contract/third@3", 4, False)]
        filled.serve("things", "contract/third@3")
        assert filled.search_vector("things", made_of("关闭灯", 3), 1)[0].id == "b"
        filled.write([record("a", text="打开灯", n="kept")])
        assert filled.discard("things", NEW) == 4
        filled.serve("things", MODEL)
        assert len(filled.search("things", vector(1))) == 3

    def test_what_cannot_be_is_refused(self, filled: Store) -> None:
        embed(filled)
        with pytest.raises(InvalidArgument, match="no vectors"):
            filled.serve("things", "contract/nobody@3")
        filled.serve("nothing", NEW)
        with pytest.raises(DimensionMismatch):
            filled.put_vectors("things", NEW, [NewVector("a", text_hash("打开灯"), vector(1))])
        with pytest.raises(DimensionMismatch):
            filled.put_vectors("things", "m", [new("a", "打开灯"), new("b", "关闭灯", 3)])
        with pytest.raises(InvalidArgument):
            filled.put_vectors("things", "m", [NewVector("a", text_hash("打开灯"), np.zeros(3, np.float32))])
        with pytest.raises(InvalidArgument):
            filled.put_vectors("things", "", [new("a", "打开灯")])
        for call in (filled.models, filled.model_of):
            with pytest.raises(InvalidArgument):
                call("")
        with pytest.raises(InvalidArgument):
            filled.missing("things", NEW, limit=MAX_LIMIT + 1)
        assert [info.model for info in filled.models("things")] == [MODEL, NEW]
