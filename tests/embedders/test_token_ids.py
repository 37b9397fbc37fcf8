"""Token ids of long texts: where they are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from homing.embedders.local import windows

CLS, SEP, END = 101, 102, 1


@given(st.lists(st.sampled_from([END, 2, 3, 4]), max_size=400), st.integers(3, 60))
def test_windows_hold_every_token_once_in_as_few_runs_as_can_be(inner: list[int], most: int) -> None:
    cut = windows([CLS, *inner, SEP], most, ends={END})
    assert [token for one in cut for token in one[1:-1]] == inner
    assert all((one[0], one[-1]) == (CLS, SEP) and len(one) <= most for one in cut)
    assert len(cut) == max(1, -(-len(inner) // (most - 2)))


def test_a_window_ends_with_a_sentence() -> None:
    inner = [2, 2, 2, 2, END, 3, 3, 3, 3, 3]
    assert windows([CLS, *inner, SEP], 8, ends={END}) == [[CLS, 2, 2, 2, 2, END, SEP], [CLS, 3, 3, 3, 3, 3, SEP]]
    inner = [2, 2, 2, 2, 2, 2, END, 3, 3, 3]
    assert [len(one) - 2 for one in windows([CLS, *inner, SEP], 9, ends={END})] == [7, 3]


def test_without_a_sentence_in_reach_windows_are_equal() -> None:
    assert [len(one) - 2 for one in windows([CLS, *[5] * 30, SEP], 12, ends={END})] == [10, 10, 10]
