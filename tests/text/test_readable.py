"""Text as UTF-8 can carry it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from homing.text.decoding import readable

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=5), inner, max_size=4)
    ),
)


@given(ANYTHING)
def test_whatever_is_made_readable_can_be_written(value: object) -> None:
    json.dumps(readable(value), ensure_ascii=False).encode()


@given(st.text(st.characters()))
def test_what_can_be_written_stays_and_offsets_do_too(text: str) -> None:
    shown = readable(text)
    assert len(shown) == len(text)
    assert all(one == other or "\ud800" <= one <= "\udfff" for one, other in zip(text, shown, strict=True))


def test_half_an_emoji_is_a_mark_in_the_midst_of_what_it_was_in() -> None:
    assert readable({"钥匙 \ud83d": ["在抽屉里 🗝️", "\udfff", 5]}) == {"钥匙 \ufffd": ["在抽屉里 🗝️", "\ufffd", 5]}
