"""Planning of batches: equal lengths together, everything once, bounded, and work for every worker."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from homing.embedders.local import MAX_TOKENS, MIN_TOKENS, plan_batches

lengths_of_texts = st.lists(st.integers(2, 600), max_size=300)


@given(lengths_of_texts, st.integers(1, 64))
def test_every_text_is_in_exactly_one_batch(lengths: list[int], workers: int) -> None:
    batches = plan_batches(lengths, workers=workers)
    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))


@given(lengths_of_texts, st.integers(1, 64))
def test_a_batch_holds_texts_of_one_length_and_is_bounded(lengths: list[int], workers: int) -> None:
    for batch in plan_batches(lengths, workers=workers):
        [length] = {lengths[position] for position in batch}
        assert length * len(batch) <= MAX_TOKENS or len(batch) == 1


@given(lengths_of_texts)
def test_long_batches_come_first(lengths: list[int]) -> None:
    order = [lengths[batch[0]] for batch in plan_batches(lengths)]
    assert order == sorted(order, reverse=True)


def test_texts_of_one_length_are_shared_out_to_all_workers() -> None:
    assert len(plan_batches([10] * 32, workers=1)) == 1
    assert len(plan_batches([10] * 32, workers=2)) == 2
    assert len(plan_batches([256] * 16, workers=16)) == 16


def test_a_handful_of_short_texts_is_not_torn_apart() -> None:
    assert len(plan_batches([8] * (MIN_TOKENS // 8), workers=16)) == 1


def test_no_texts_need_no_batches() -> None:
    assert plan_batches([]) == []
