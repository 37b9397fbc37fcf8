"""What a filter lets through, in both legs: the same as `homing.stores.filters.matches` says, for any tree."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from homing.errors import InvalidArgument
from homing.stores.filters import matches, wanted
from homing.stores.store import SearchOptions, Store
from homing.testing.store_contract.samples import Opened, record, vector

VALUES: tuple[Any, ...] = (
    0,
    1,
    1.0,
    2.5,
    -3,
    "1",
    "a",
    "abc",
    "数据",
    "數",
    "",
    True,
    False,
    None,
    "x" * 200,
    {"a": 1},
)
KEYS = ("k", "year", "标签", 'quo"te', "it's")


def metadata(chance: Random) -> dict[str, Any]:
    """Some metadata."""
    found: dict[str, Any] = {}
    for key in KEYS:
        if chance.random() < 0.6:
            many = chance.random() < 0.3
            found[key] = chance.choices(VALUES, k=chance.randrange(4)) if many else chance.choice(VALUES)
    return found


def condition(chance: Random, depth: int = 0) -> dict[str, Any]:
    """Some filter."""
    kind = chance.random()
    if depth < 3 and kind < 0.35:
        parts = [condition(chance, depth + 1) for _ in range(chance.randint(1, 3))]
        return chance.choice([{"$and": parts}, {"$or": parts}, {"$not": parts[0]}])
    key, value = chance.choice(KEYS), chance.choice(VALUES)
    comparable = chance.choice(
        [one for one in VALUES if isinstance(one, int | float | str) and not isinstance(one, bool)]
    )
    return {
        key: chance.choice(
            [
                value,
                {"$eq": value},
                {"$ne": value},
                {"$in": chance.choices(VALUES, k=3)},
                {"$nin": chance.choices(VALUES, k=2)},
                {"$exists": chance.random() < 0.5},
                {chance.choice(["$lt", "$lte", "$gt", "$gte"]): comparable},
            ]
        )
    }


class NarrowingContract(Opened):
    """Filters."""

    def test_any_tree_of_conditions_means_the_same_in_both_legs_and_in_a_list_of_ids(self, store: Store) -> None:
        chance = Random(7)
        known = {f"r{number}": metadata(chance) for number in range(80)}
        store.upsert(
            record(name, 1, number / 100, text="words", **one) for number, (name, one) in enumerate(known.items())
        )
        for _ in range(120):
            options = SearchOptions(condition(chance))
            expected = {name for name, one in known.items() if matches(wanted(options), one)}
            near = {one.id for one in store.search("things", vector(1), 100, options)}
            worded = {one.id for one in store.search_text("things", "words", 100, options)}
            assert (near, worded) == (expected, expected), options.metadata_filter
            assert store.ids("things", options) == sorted(expected), options.metadata_filter

    @pytest.mark.parametrize(
        "wrong",
        [
            {"$where": 1},
            {"k": {"$like": "x"}},
            {"k": {"$gt": None}},
            {"k": {"$gt": float("nan")}},
            {"k": {"$in": 3}},
            {"k": {"$exists": 1}},
            {"$or": []},
            {"$and": {"k": 1}},
            {"$not": 3},
        ],
    )
    def test_what_is_no_condition_is_refused_with_its_place(self, store: Store, wrong: dict[str, Any]) -> None:
        store.upsert([record("a", 1, text="words")])
        with pytest.raises(InvalidArgument, match="metadata_filter"):
            store.search("things", vector(1), 10, SearchOptions(wrong))
        with pytest.raises(InvalidArgument, match="metadata_filter"):
            store.search_text("things", "words", 10, SearchOptions(wrong))
