"""The fake embedder keeps the contract of a real one, and ranks."""

from __future__ import annotations

import time

import numpy as np
import pytest

from homing.embedders.provider import EmbeddingProvider
from homing.errors import InvalidArgument, ProviderUnavailable
from homing.testing.fake import FakeEmbedder
from homing.testing.provider_contract import ProviderContract


class TestFakeEmbedder(ProviderContract):
    @pytest.fixture
    def provider(self) -> EmbeddingProvider:
        return FakeEmbedder()


class TestWideFakeEmbedder(ProviderContract):
    @pytest.fixture
    def provider(self) -> EmbeddingProvider:
        return FakeEmbedder(384)


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("提交代码", "用git提交代码到仓库", "读取Excel文件"),
        ("打开卧室的灯", "卧室的灯", "客厅的空调"),
        ("開啟臥室的燈", "卧室的灯", "客厅的空调"),
        ("commit the code", "write a commit message", "the weather of tomorrow"),
        ("GPT-4o 价格", "GPT-4o costs", "天气预报"),
        ("１２３ 号", "123 号", "456 楼"),
        ("🚀", "launch 🚀", "🙂"),
    ],
)
def test_texts_that_share_words_are_nearer_than_texts_that_do_not(query: str, near: str, far: str) -> None:
    rows = FakeEmbedder().embed([query, near, far])
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.2


def test_a_shared_stop_word_brings_nothing_nearer() -> None:
    rows = FakeEmbedder(512).embed(["the cat is on the mat", "the price of the house", "mat"])
    assert abs(rows[0] @ rows[1]) < 0.2 < rows[0] @ rows[2]


def test_vectors_do_not_change_between_versions_or_machines() -> None:
    row = FakeEmbedder(8).embed(["灯"])[0]
    np.testing.assert_array_equal(np.sign(row), [1, -1, -1, -1, 1, -1, -1, -1])


def test_it_counts_calls_and_lists_texts() -> None:
    fake = FakeEmbedder()
    fake.embed(["a", "b"])
    fake.embed(["c"], kind="query")
    assert (fake.calls, fake.texts) == (2, ["a", "b", "c"])


def test_it_fails_and_recovers_when_told_to() -> None:
    fake = FakeEmbedder(fail_with=ProviderUnavailable("down"))
    with pytest.raises(ProviderUnavailable):
        fake.embed(["a"])
    fake.fail_with = None
    assert fake.embed(["a"]).shape == (1, 64)
    assert fake.calls == 2


def test_it_is_slow_when_told_to() -> None:
    fake, start = FakeEmbedder(delay=0.05), time.monotonic()
    fake.embed(["a"])
    assert time.monotonic() - start >= 0.05


def test_no_dimensions_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="dimensions=0"):
        FakeEmbedder(0)
