"""Strange input is kept or refused, never mangled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from homing.errors import DimensionMismatch, InvalidArgument, ModelMismatch
from homing.records import VectorRecord
from homing.stores.store import MAX_LIMIT, SearchOptions, Store
from homing.testing.store_contract.samples import MODEL, Opened, ids, only, record, vector
from homing.vectors import Vector


class RefusingContract(Opened):
    """Any text, any name; bad limits, vectors, models and metadata."""

    @pytest.mark.parametrize(
        "text", ["a\0b", "\ud83d half", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "", "\r\n\t", "𠮷野家"]
    )
    def test_any_text_is_kept_whole(self, store: Store, text: str) -> None:
        store.upsert([VectorRecord("a", "things", vector(1), {"note": text, text: 1}, text, MODEL)])
        [found] = store.get("things", ["a"])
        assert (found.text, found.metadata["note"]) == (text, text)
        assert ids(store.search("things", vector(1), options=only(note=text))) == ["a"]

    @pytest.mark.parametrize("name", ["猫", "a b", "it's", '"', "🚀", "a/b?c=d&e", "%_", "x" * 2000, " ", "1"])
    def test_any_name_is_a_name(self, store: Store, name: str) -> None:
        store.upsert([record(name, 1, text="words", collection=name), record("other", 1, text="words")])
        assert ids(store.search(name, vector(1))) == [name]
        assert ids(store.search_text(name, "words")) == [name]
        assert [found.id for found in store.get(name, [name])] == [name]
        assert store.delete(name, [name]) == 1

    @pytest.mark.parametrize("name", ["", "a\0b", "\ud800", 7, None])
    def test_what_cannot_be_a_name_is_refused(self, store: Store, name: Any) -> None:
        for call in (
            lambda: store.upsert([record(name, 1)]),
            lambda: store.upsert([record("a", 1, collection=name)]),
            lambda: store.search(name, vector(1)),
            lambda: store.search_text(name, "x"),
            lambda: store.get("things", [name]),
            lambda: store.delete("things", [name]),
            lambda: store.drop(name),
        ):
            with pytest.raises(InvalidArgument):
                call()

    @pytest.mark.parametrize("limit", [-1, MAX_LIMIT + 1, 1.5, "3", None, True])
    def test_an_impossible_limit_is_refused(self, store: Store, limit: Any) -> None:
        with pytest.raises(InvalidArgument):
            store.search("things", vector(1), limit=limit)
        with pytest.raises(InvalidArgument):
            store.search_text("things", "x", limit=limit)

    @pytest.mark.parametrize("bad", [vector(), vector(float("nan")), vector(float("inf"))])
    def test_a_vector_without_direction_is_refused(self, store: Store, bad: Vector) -> None:
        with pytest.raises(InvalidArgument):
            store.upsert([VectorRecord("a", "things", bad, {}, "", MODEL)])
        with pytest.raises(InvalidArgument):
            store.search("things", bad)

    def test_a_vector_of_another_width_is_refused(self, store: Store) -> None:
        store.upsert([record("a", 1)])
        with pytest.raises(DimensionMismatch):
            store.upsert([VectorRecord("b", "things", np.ones(3, np.float32), {}, "", MODEL)])
        with pytest.raises(DimensionMismatch):
            store.search("things", np.ones(3, np.float32))
        with pytest.raises(DimensionMismatch):
            store.upsert(
                [record("x", 1, collection="new"), VectorRecord("y", "new", np.ones(3, np.float32), {}, "", MODEL)]
            )
        assert [info.name for info in store.collections()] == ["things"]

    def test_vectors_of_two_models_never_mix(self, store: Store) -> None:
        store.upsert([record("a", 1)])
        with pytest.raises(ModelMismatch, match="contract/model@8"):
            store.upsert([record("b", 1, model="another/model@8")])
        with pytest.raises(ModelMismatch, match="contract/model@8"):
            store.search("things", vector(1), options=SearchOptions(model="another/model@8"))
        assert ids(store.search("things", vector(1), options=SearchOptions(model=MODEL))) == ["a"]
        with pytest.raises(ModelMismatch):
            store.upsert([record("x", 1, collection="new"), record("y", 1, collection="new", model="another/model@8")])

    @pytest.mark.parametrize(
        ("metadata", "path"),
        [
            ({"a": object()}, "metadata.a"),
            ({"a": {"b": [1, {2, 3}]}}, "metadata.a.b[1]"),
            ({"a": float("nan")}, "metadata.a"),
            ({"a": b"bytes"}, "metadata.a"),
        ],
    )
    def test_metadata_that_json_cannot_hold_is_refused_by_its_path(
        self, store: Store, metadata: dict[str, Any], path: str
    ) -> None:
        with pytest.raises(InvalidArgument) as refused:
            store.upsert([VectorRecord("a", "things", vector(1), metadata, "", MODEL)])
        assert refused.value.details["path"] == path
        assert path in refused.value.message

    def test_metadata_keys_are_text(self, store: Store) -> None:
        with pytest.raises(InvalidArgument):
            store.upsert([VectorRecord("a", "things", vector(1), {1: "x"}, "", MODEL)])  # type: ignore[dict-item]
