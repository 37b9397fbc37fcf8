"""A cached provider is the same provider, asked less."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
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


def test_the_file_stays_within_its_bound_and_keeps_what_is_used(fake: FakeEmbedder, path: Path) -> None:
    bound = 600_000
    cached = Cached(fake, path, max_bytes=bound, memory_bytes=0)
    cached.embed(["常用"])
    for batch in range(30):
        cached.embed([f"{batch}-{n}" for n in range(200)])
        _age_everything_but(path, fake, "常用")
    cached.close()
    db = apsw.Connection(str(path))
    kept = db.execute("select count(*) from vector").get
    db.close()
    assert 300 < kept < 6001
    assert path.stat().st_size < bound * 1.3
    calls = fake.calls
    again = Cached(fake, path)
    again.embed(["常用"])
    assert fake.calls == calls
    again.close()


def _age_everything_but(path: Path, fake: FakeEmbedder, text: str) -> None:
    db = apsw.Connection(str(path))
    db.set_busy_timeout(1000)
    db.execute("update vector set seen = seen - 1 where id > 1")
    db.close()


def test_reading_writes_at_most_once_a_day(fake: FakeEmbedder, path: Path) -> None:
    cached = Cached(fake, path, memory_bytes=0)
    cached.embed(["a"])
    db = apsw.Connection(str(path))
    before = db.pragma("data_version")
    cached.embed(["a"])
    assert db.pragma("data_version") == before
    db.execute("update vector set seen = seen - 48")
    aged = db.execute("select seen from vector").get
    cached.embed(["a"])
    assert db.execute("select seen from vector").get == aged + 48
    db.close()
    cached.close()


@pytest.mark.parametrize(
    "content", [b"this is not a database" * 100, b"SQLite format 3\x00" + os.urandom(4096)], ids=["text", "garbage"]
)
def test_a_broken_file_is_rebuilt_with_a_warning(
    fake: FakeEmbedder, path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        cached = Cached(fake, path)
    assert "started afresh" in caplog.text
    cached.embed(["a"])
    cached.close()
    again = Cached(fake, path)
    again.embed(["a"])
    assert fake.calls == 1
    again.close()


def test_a_file_that_breaks_while_it_is_in_use_is_rebuilt(
    fake: FakeEmbedder, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cached = Cached(fake, path, memory_bytes=0)
    expected = cached.embed([f"t{n}" for n in range(500)])
    db = apsw.Connection(str(path))
    db.execute("pragma wal_checkpoint(truncate)")
    db.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))
    with caplog.at_level(logging.WARNING):
        np.testing.assert_array_equal(cached.embed([f"t{n}" for n in range(500)]), expected)
        np.testing.assert_array_equal(cached.embed([f"t{n}" for n in range(500)]), expected)
    assert "started afresh" in caplog.text
    assert fake.calls in (2, 3)
    cached.embed([f"t{n}" for n in range(500)])
    assert fake.calls in (2, 3)
    cached.close()


def test_the_file_of_another_application_is_left_alone(
    fake: FakeEmbedder, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    db = apsw.Connection(str(path))
    db.execute("create table vector (mine text); insert into vector values ('precious')")
    db.close()
    with caplog.at_level(logging.WARNING):
        cached = Cached(fake, path)
    assert cached.embed(["a"]).shape == (1, 64)
    cached.close()
    assert "going on without it" in caplog.text
    assert apsw.Connection(str(path)).execute("select mine from vector").get == "precious"


def test_a_path_that_cannot_be_a_file_costs_a_warning(
    fake: FakeEmbedder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        cached = Cached(fake, tmp_path)
    assert cached.embed(["a"]).shape == (1, 64)
    cached.embed(["a"])
    assert fake.calls == 1
    assert "going on without it" in caplog.text
    cached.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_folder_costs_a_warning(fake: FakeEmbedder, tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    cached = Cached(fake, tmp_path / "cache.db")
    assert cached.embed(["a"]).shape == (1, 64)
    cached.close()


def test_the_folder_of_the_file_is_created(fake: FakeEmbedder, tmp_path: Path) -> None:
    cached = Cached(fake, tmp_path / "new" / "folder" / "cache.db")
    cached.embed(["a"])
    cached.close()
    assert (tmp_path / "new" / "folder" / "cache.db").exists()


def test_another_process_holding_the_lock_costs_nothing_but_the_saving(fake: FakeEmbedder, path: Path) -> None:
    cached = Cached(fake, path, memory_bytes=0)
    db = apsw.Connection(str(path))
    db.execute("begin immediate")
    assert cached.embed(["a"]).shape == (1, 64)
    db.execute("rollback")
    cached.embed(["a"])
    cached.embed(["a"])
    assert fake.calls == 2
    db.close()
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


def _embed_in_process(path: str, seed: int, answers: multiprocessing.Queue[bool]) -> None:
    cached = Cached(FakeEmbedder(), path, memory_bytes=0)
    texts = [f"{n * 7 % 500}" for n in range(seed, seed + 400)]
    right = FakeEmbedder().embed(texts)
    answers.put(all(np.array_equal(cached.embed(texts[at : at + 40]), right[at : at + 40]) for at in range(0, 400, 40)))
    cached.close()


@pytest.mark.slow
def test_several_processes_create_and_share_one_file(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    answers: multiprocessing.Queue[bool] = context.Queue()
    processes = [context.Process(target=_embed_in_process, args=(str(path), seed, answers)) for seed in range(3)]
    for process in processes:
        process.start()
    assert [answers.get(timeout=60) for _ in processes] == [True] * 3
    for process in processes:
        process.join()
    assert apsw.Connection(str(path)).execute("select count(*) from vector").get > 300


@pytest.mark.slow
def test_a_process_killed_while_writing_leaves_a_sound_file(path: Path, fake: FakeEmbedder) -> None:
    script = (
        "import itertools, sys\n"
        "from homing.embedders.cached import Cached\n"
        "from homing.testing.fake import FakeEmbedder\n"
        "cached = Cached(FakeEmbedder(), sys.argv[1])\n"
        "for batch in itertools.count():\n"
        "    cached.embed([f'{batch} {n}' for n in range(50)])\n"
        "    print(batch, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < 20:
            pass
        process.send_signal(signal.SIGKILL)
    cached = Cached(fake, path)
    cached.embed([f"{batch} {n}" for batch in range(20) for n in range(50)])
    assert fake.calls == 0
    cached.close()
    assert apsw.Connection(str(path)).execute("pragma integrity_check").get == "ok"


def test_closing_twice_is_fine_and_embedding_still_works(fake: FakeEmbedder, path: Path) -> None:
    cached = Cached(fake, path)
    cached.close()
    cached.close()
    assert cached.embed(["a"]).shape == (1, 64)


@pytest.mark.parametrize("size", ["max_bytes", "memory_bytes"])
def test_a_negative_size_is_refused(fake: FakeEmbedder, path: Path, size: str) -> None:
    with pytest.raises(InvalidArgument):
        Cached(fake, path, **{size: -1})  # type: ignore[arg-type]
