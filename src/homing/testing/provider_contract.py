"""What every embedding provider must do, as tests that a provider passes by giving one fixture.

class TestMyProvider(ProviderContract):
    @pytest.fixture
    def provider(self):
        return MyProvider("some-model")
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from homing.embedders.provider import EmbeddingProvider
from homing.errors import InvalidArgument
from homing.vectors import Matrix

TEXTS = (
    "自动分析Git改动并生成conventional commit信息",
    "读取Excel文件并提取数据分析",
    "Turn off every light except the one in the bedroom.",
    "打开",
    "關閉設備",
    "１２３ full-width digits ４５６",
    "GPT-4o and C++ in one 句子",
    "🙂🚀 emoji only sometimes 🇨🇳",
    "a",
    "The quick brown fox jumps over the lazy dog. " * 8,
)
ODD = {
    "empty": "",
    "blank": "  \n\t　",
    "NUL": "before\x00after",
    "lone surrogate": "broken \ud83d text \udc00",
    "emoji": "👩‍👩‍👧‍👦",
    "combining": "e\u0301 \u200d\u200b",
    "right to left": "مرحبا שלום",
    "control": "\x01\x02\x1b[31m",
    "noncharacter": "\uffff\U0010ffff",
}


class ProviderContract:
    """Subclass it, name the subclass `Test…`, and define the fixture `provider`.

    A model whose arithmetic depends on the batch sets `tolerance` to the largest difference it may show between a text
    alone and the same text in a batch. The promise is identity, so the default is float32 rounding and nothing more.
    """

    tolerance = 1e-6
    too_long: str = "a long story 很长的故事 " * 20_000
    """A text beyond the model's window."""

    @pytest.fixture
    def provider(self) -> EmbeddingProvider:
        """The provider under test; every subclass defines its own."""
        raise NotImplementedError(f"{type(self).__name__} must define the fixture `provider`")

    def test_it_satisfies_the_protocol(self, provider: EmbeddingProvider) -> None:
        assert isinstance(provider, EmbeddingProvider)

    def test_its_identity_names_provider_model_and_width(self, provider: EmbeddingProvider) -> None:
        name, _, width = provider.id.rpartition("@")
        assert int(width) == provider.dimensions > 0
        assert all(name.partition("/"))

    def test_no_texts_give_no_rows_of_the_right_width(self, provider: EmbeddingProvider) -> None:
        rows = provider.embed([])
        assert rows.shape == (0, provider.dimensions)
        assert rows.dtype == np.float32
        assert provider.truncated([]) == []

    def test_one_row_per_text_of_float32_and_unit_length(self, provider: EmbeddingProvider) -> None:
        for count in (1, 2, len(TEXTS)):
            _assert_rows(provider.embed(TEXTS[:count]), count, provider.dimensions)

    def test_queries_are_rows_of_the_same_space(self, provider: EmbeddingProvider) -> None:
        _assert_rows(provider.embed(TEXTS[:3], kind="query"), 3, provider.dimensions)

    def test_rows_come_in_the_order_of_the_texts(self, provider: EmbeddingProvider) -> None:
        forward, backward = provider.embed(TEXTS), provider.embed(TEXTS[::-1])
        np.testing.assert_allclose(forward, backward[::-1], atol=self.tolerance)

    def test_different_texts_have_different_rows(self, provider: EmbeddingProvider) -> None:
        rows = provider.embed(TEXTS)
        cosines = rows @ rows.T - np.eye(len(TEXTS), dtype=np.float32)
        assert cosines.max() < 0.999

    def test_a_text_has_the_same_row_every_time(self, provider: EmbeddingProvider) -> None:
        np.testing.assert_array_equal(provider.embed(TEXTS), provider.embed(TEXTS))

    def test_a_text_has_the_same_row_alone_and_in_a_batch(self, provider: EmbeddingProvider) -> None:
        together = provider.embed(TEXTS)
        alone = np.concatenate([provider.embed([text]) for text in TEXTS])
        np.testing.assert_allclose(alone, together, atol=self.tolerance)

    def test_a_text_given_twice_has_the_same_row_twice(self, provider: EmbeddingProvider) -> None:
        rows = provider.embed([TEXTS[0], TEXTS[1], TEXTS[0]])
        np.testing.assert_allclose(rows[0], rows[2], atol=self.tolerance)

    def test_a_text_has_the_same_row_in_every_thread(self, provider: EmbeddingProvider) -> None:
        expected = provider.embed(TEXTS)
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(lambda _: provider.embed(TEXTS), range(8)))
        for answer in answers:
            np.testing.assert_allclose(answer, expected, atol=self.tolerance)

    @pytest.mark.parametrize("name", ODD)
    def test_odd_text_has_a_row_alone_and_among_others(self, provider: EmbeddingProvider, name: str) -> None:
        alone = provider.embed([ODD[name]])
        _assert_rows(alone, 1, provider.dimensions)
        among = provider.embed([TEXTS[0], ODD[name], TEXTS[2]])
        np.testing.assert_allclose(among[1], alone[0], atol=self.tolerance)
        np.testing.assert_allclose(among[0], provider.embed([TEXTS[0]])[0], atol=self.tolerance)

    def test_chinese_english_and_mixed_texts_rank_their_own_kind_first(self, provider: EmbeddingProvider) -> None:
        documents = provider.embed(
            ["读取Excel文件并提取数据", "turn on the light in the kitchen", "git commit 提交代码"]
        )
        queries = provider.embed(["读取Excel文件", "light in the kitchen", "用git提交代码"], kind="query")
        assert (queries @ documents.T).argmax(axis=1).tolist() == [0, 1, 2]

    def test_a_long_text_is_cut_at_its_end_and_said_to_be(self, provider: EmbeddingProvider) -> None:
        assert provider.truncated(["short", self.too_long, "短"]) == [False, True, False]
        rows = provider.embed([self.too_long, self.too_long + " and its end is never read"])
        _assert_rows(rows, 2, provider.dimensions)
        np.testing.assert_allclose(rows[0], rows[1], atol=self.tolerance)

    @pytest.mark.parametrize("bad", [[None], [1], [b"bytes"], ["fine", None]])
    def test_what_is_not_text_is_refused(self, provider: EmbeddingProvider, bad: list[object]) -> None:
        with pytest.raises(InvalidArgument):
            provider.embed(bad)  # type: ignore[arg-type]

    def test_one_string_is_not_a_list_of_texts(self, provider: EmbeddingProvider) -> None:
        with pytest.raises(InvalidArgument):
            provider.embed("a string is a sequence of strings, too")


def _assert_rows(rows: Matrix, count: int, dimensions: int) -> None:
    assert rows.shape == (count, dimensions)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-4)
