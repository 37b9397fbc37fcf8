"""Filters are data: whatever keys and values are, they are compared and never executed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from homing.records import VectorRecord
from homing.stores.filters import attributes, canonical
from homing.stores.lance import LanceStore
from homing.stores.store import SearchOptions
from homing.testing.store_contract import MODEL, ids, vector
from tests.effort import times

NASTY = [
    "'",
    "''",
    '"',
    "\\",
    "\\'",
    "a'b",
    "') OR true --",
    "=",
    '"k"=1',
    "%",
    "_",
    "\n",
    "灯'光",
    "🚀",
    "?",
    "{}",
    "[]",
]
scalar = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 1.0, -0.0]), st.sampled_from(NASTY), st.text()
)
keys = st.one_of(st.sampled_from(["k", *NASTY]), st.text(max_size=3))
metadata = st.dictionaries(keys, st.one_of(scalar, st.lists(scalar, max_size=3)), max_size=3)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanceStore]:
    store = LanceStore(tmp_path_factory.mktemp("filters") / "lance")
    yield store
    store.close()


def passes(held: dict[str, Any], asked: dict[str, Any]) -> bool:
    pairs = attributes(held)
    return all(
        any((key, canonical(item)) in pairs for item in (value if isinstance(value, list) else [value]))
        for key, value in asked.items()
    )


@settings(max_examples=times(5, in_full=100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(metadata, min_size=1, max_size=6), st.data())
def test_a_filter_lets_through_what_equals_it_and_nothing_else(
    shared: LanceStore, held: list[dict[str, Any]], data: st.DataObject
) -> None:
    shared.drop("things")
    shared.upsert(VectorRecord(f"{n:02d}", "things", vector(1), one, "灯 light", MODEL) for n, one in enumerate(held))
    # Mostly something that is there, so that most answers are not empty.
    asked = data.draw(st.one_of(st.sampled_from(held), metadata))
    expected = [f"{n:02d}" for n, one in enumerate(held) if passes(one, asked)]
    assert ids(shared.search("things", vector(1), options=SearchOptions(asked))) == expected
    assert ids(shared.search_text("things", "灯", options=SearchOptions(asked))) == expected


def test_ids_are_data_too(shared: LanceStore) -> None:
    shared.upsert([VectorRecord(one, "ids", vector(1), {}, "", MODEL) for one in (*NASTY, "other")])
    left = {*NASTY, "other"}
    for name in NASTY:
        assert [found.id for found in shared.get("ids", [name])] == [name]
        assert shared.delete("ids", [name]) == 1
        left.remove(name)
        assert set(shared.ids("ids")) == left


def test_ten_thousand_ids_are_fetched_and_deleted_at_once(folder: Path) -> None:
    store = LanceStore(folder)
    names = [f"{number:05d}" for number in range(10_000)]
    store.upsert([VectorRecord(name, "things", None, {}, name) for name in names])
    assert [found.id for found in store.get("things", names[::-1])] == names[::-1]
    assert store.delete("things", names[1:]) == 9_999
    assert [found.id for found in store.records("things")] == ["00000"]
    store.close()
