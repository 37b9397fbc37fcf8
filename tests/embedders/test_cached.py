"""A cached provider is the same provider, asked less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import numpy as np
import pytest

from homing.embedders.cached import Cached
from homing.embedders.provider import EmbeddingProvider, Kind
from homing.errors import DimensionMismatch, InvalidArgument, MalformedAnswer, ProviderUnavailable
from homing.testing.fake import FakeEmbedder
from homing.testing.provider_contract import ProviderContract
from homing.vectors import Matrix, Scale


class TestCachedContract(ProviderContract):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> Iterator[EmbeddingProvider]:
        cached = Cached(FakeEmbedder(), tmp_path / "cache.db")
        yield cached
        cached.close()


class TestCachedWithoutMemoryContract(ProviderContract):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> Iterator[EmbeddingProvider]:
        cached = Cached(FakeEmbedder(), tmp_path / "cache.db", memory_bytes=0)
        yield cached
        cached.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


@pytest.fixture
def fake() -> FakeEmbedder:
    return FakeEmbedder(scale=Scale(0.3, 12))


def test_it_passes_identity_width_scale_and_truncation_through(fake: FakeEmbedder, path: Path) -> None:
    cached = Cached(fake, path)
    assert (cached.id, cached.dimensions, cached.scale) == (fake.id, 64, Scale(0.3, 12))
    assert cached.truncated(["x" * 20_000, "x"]) == [True, False]
    cached.close()


@pytest.mark.parametrize("memory_bytes", [0, 1 << 20])
def test_a_text_is_embedded_once(fake: FakeEmbedder, path: Path, memory_bytes: int) -> None:
    cached = Cached(fake, path, memory_bytes=memory_bytes)
    first = cached.embed(["打开灯", "commit code", "混合 mixed"])
    again = cached.embed(["打开灯", "commit code", "混合 mixed"])
    np.testing.assert_array_equal(first, again)
    assert fake.calls == 1
    cached.close()


@pytest.mark.parametrize("memory_bytes", [0, 1 << 20])
def test_only_what_is_missing_is_embedded_and_the_order_is_kept(
    fake: FakeEmbedder, path: Path, memory_bytes: int
) -> None:
    cached = Cached(fake, path, memory_bytes=memory_bytes)
    cached.embed(["b", "d"])
    rows = cached.embed(["a", "b", "c", "d"])
    assert fake.texts == ["b", "d", "a", "c"]
    np.testing.assert_array_equal(rows, FakeEmbedder().embed(["a", "b", "c", "d"]))
    cached.close()


def test_a_text_given_twice_in_one_call_is_embedded_once(fake: FakeEmbedder, path: Path) -> None:
    cached = Cached(fake, path)
    rows = cached.embed(["x", "y", "x", "x"])
    assert fake.texts == ["x", "y"]
    np.testing.assert_array_equal(rows[0], rows[3])
    cached.close()


def test_it_remembers_after_a_restart(fake: FakeEmbedder, path: Path) -> None:
    first = Cached(fake, path)
    rows = first.embed([f"文档 {n}" for n in range(1000)])
    first.close()
    second = Cached(fake, path)
    np.testing.assert_array_equal(second.embed([f"文档 {n}" for n in range(1000)]), rows)
    assert fake.calls == 1
    second.close()


def test_models_do_not_see_each_others_rows(path: Path) -> None:
    one, other = FakeEmbedder(model="one"), FakeEmbedder(model="other")
    narrow = FakeEmbedder(32, model="one")
    for fake in (one, other, narrow):
        cached = Cached(fake, path)
        assert cached.embed(["同一句话"]).shape == (1, fake.dimensions)
        assert fake.calls == 1
        cached.close()


class _Asymmetric(FakeEmbedder):
    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        return super().embed([f"{kind} {text}" for text in texts])


def test_queries_and_documents_are_kept_apart(path: Path) -> None:
    cached = Cached(_Asymmetric(), path)
    document, query = cached.embed(["灯"]), cached.embed(["灯"], kind="query")
    assert not np.array_equal(document, query)
    np.testing.assert_array_equal(cached.embed(["灯"], kind="query"), query)
    cached.close()


def test_a_symmetric_model_shares_rows_between_queries_and_documents(fake: FakeEmbedder, path: Path) -> None:
    cached = Cached(fake, path, by_kind=False)
    cached.embed(["灯"])
    cached.embed(["灯"], kind="query")
    assert fake.calls == 1
    cached.close()


def test_an_answer_may_be_changed_without_changing_the_next(fake: FakeEmbedder, path: Path) -> None:
    cached = Cached(fake, path)
    first = cached.embed(["a"])
    expected = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(cached.embed(["a"]), expected)
    cached.close()


def test_nothing_is_kept_of_a_failed_call(fake: FakeEmbedder, path: Path) -> None:
    cached = Cached(fake, path)
    fake.fail_with = ProviderUnavailable("down")
    with pytest.raises(ProviderUnavailable):
        cached.embed(["a"])
    fake.fail_with = None
    assert cached.embed(["a"]).shape == (1, 64)
    cached.close()


def test_known_texts_are_answered_while_the_provider_is_down(fake: FakeEmbedder, path: Path) -> None:
    cached = Cached(fake, path)
    expected = cached.embed(["known"])
    fake.fail_with = ProviderUnavailable("down")
    np.testing.assert_array_equal(cached.embed(["known"]), expected)
    cached.close()


class _Lying(FakeEmbedder):
    def __init__(self, answer: Matrix) -> None:
        super().__init__()
        self.answer = answer

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        self.calls += 1
        return self.answer


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (np.ones((1, 32), np.float32), DimensionMismatch),
        (np.ones((2, 64), np.float32), MalformedAnswer),
        (np.ones(64, np.float32), MalformedAnswer),
    ],
)
def test_a_wrong_shape_is_an_error_and_is_never_kept(path: Path, answer: Matrix, error: type[Exception]) -> None:
    lying = _Lying(answer)
    cached = Cached(lying, path)
    for _ in range(2):
        with pytest.raises(error):
            cached.embed(["a"])
    assert lying.calls == 2
    cached.close()
    assert apsw.Connection(str(path)).execute("select count(*) from vector").get == 0


def test_a_row_that_was_tampered_with_is_embedded_again(fake: FakeEmbedder, path: Path) -> None:
    cached = Cached(fake, path, memory_bytes=0)
    expected = cached.embed(["a", "b", "c"])
    db = apsw.Connection(str(path))
    db.execute("update vector set row = zeroblob(256) where id = 1; update vector set row = x'00' where id = 2")
    db.close()
    np.testing.assert_array_equal(cached.embed(["a", "b", "c"]), expected)
    assert sorted(fake.texts) == ["a", "a", "b", "b", "c"]
    cached.embed(["a", "b", "c"])
    assert fake.calls == 2
    cached.close()


def test_many_threads_share_one_cache(fake: FakeEmbedder, path: Path) -> None:
    cached = Cached(fake, path, memory_bytes=10_000)
    texts = [f"文本 {n}" for n in range(300)]
    expected = FakeEmbedder().embed(texts)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda start: cached.embed(texts[start:]), range(0, 200, 5)))
    for start, answer in zip(range(0, 200, 5), answers, strict=True):
        np.testing.assert_array_equal(answer, expected[start:])
    cached.close()


def test_closing_twice_is_fine_and_embedding_still_works(fake: FakeEmbedder, path: Path) -> None:
    cached = Cached(fake, path)
    cached.close()
    cached.close()
    assert cached.embed(["a"]).shape == (1, 64)


@pytest.mark.parametrize("size", ["max_bytes", "memory_bytes"])
def test_a_negative_size_is_refused(fake: FakeEmbedder, path: Path, size: str) -> None:
    with pytest.raises(InvalidArgument):
        Cached(fake, path, **{size: -1})  # type: ignore[arg-type]
