"""What errors mean, in Chinese."""

from __future__ import annotations

import pytest

from homing.errors import HomingError
from homing.errors_zh import has_chinese, in_chinese


def kinds(of: type[HomingError] = HomingError) -> set[type[HomingError]]:
    return {of}.union(*map(kinds, of.__subclasses__()))


def test_every_code_has_a_sentence_of_its_own() -> None:
    codes = {kind.code for kind in kinds()} - {HomingError.code}
    sentences = {code: in_chinese(code) for code in codes}
    assert in_chinese("NEVER_SEEN") not in sentences.values()
    assert len(set(sentences.values())) == len(codes)
    assert all(map(has_chinese, sentences.values()))


@pytest.mark.parametrize(("text", "expected"), [("灯塔", True), ("lamp 燈", True), ("lamp", False), ("", False)])
def test_chinese_is_noticed(text: str, expected: bool) -> None:
    assert has_chinese(text) is expected
