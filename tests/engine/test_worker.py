"""The one background embedder: in batches, the most urgent first, patient with models, and never in the way."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import apsw
import numpy as np
import pytest

from homing.database.sqlite import database as connections
from homing.embedders.provider import Chosen, EmbeddingProvider, Kind
from homing.engine.batch import MAX_RETRY_AFTER, Retries
from homing.engine.work import IMPORT
from homing.engine.worker import WorkerOptions
from homing.errors import (
    DimensionMismatch,
    InvalidArgument,
    InvalidKey,
    ModelNotReady,
    ModelUnknown,
    ProviderUnavailable,
    RateLimited,
    StoreError,
    Timeout,
)
from homing.stores.sqlite.store import SqliteStore
from homing.testing.fake import FakeEmbedder
from homing.vectors import Matrix
from tests.engine.parts import QUICK, SOON, Held, Interrupted, Parts, texts

DOWN = "texts wait for their vectors until the model is back"


def test_what_is_written_is_embedded_in_the_background(parts: Parts) -> None:
    parts.put({"a": "他一个人守着灯塔"})
    parts.engine.start()
    parts.until(lambda: parts.engine.work.waiting() == 0)
    assert parts.embedded() == {"a": "他一个人守着灯塔"}


def test_texts_of_several_collections_go_out_in_one_batch(parts: Parts) -> None:
    for collection in ("x", "y", "z"):
        parts.put({"a": f"text in {collection}"}, collection)
    assert parts.engine.flush()
    assert parts.embedder.calls == 1
    assert [info.embedded for info in parts.store.collections()] == [1, 1, 1]


def test_a_batch_is_bounded_in_texts_and_in_bytes(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "homing.db", options=WorkerOptions(batch_size=3, batch_bytes=10_000))
    parts.put(texts(7))
    assert parts.engine.flush()
    assert parts.embedder.calls == 3
    parts.put({str(number): f"{number}" * 6_000 for number in range(4)})
    assert parts.engine.flush()
    assert parts.embedder.calls == 7
    parts.close()


def test_the_newest_comes_first(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "homing.db", options=WorkerOptions(batch_size=1))
    for key in ("first", "second", "third"):
        parts.put({key: key})
    assert parts.engine.flush()
    assert parts.embedder.texts == ["third", "second", "first"]
    parts.close()


def test_a_paragraph_written_during_an_import_is_embedded_before_the_rest_of_it(tmp_path: Path) -> None:
    held = Held()
    parts = Parts(tmp_path / "homing.db", held, WorkerOptions(batch_size=8))
    parts.put(texts(400, "imported"), priority=IMPORT)
    parts.engine.start()
    assert held.entered.wait(SOON)
    parts.put({"typed": "a paragraph that somebody typed"})
    held.go.set()
    parts.until(lambda: parts.engine.work.waiting() == 0)
    assert "a paragraph that somebody typed" in held.texts[8:16]
    assert len(parts.embedded()) == 401
    parts.close()


def test_what_rests_is_embedded_early_when_it_fills_a_batch(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "homing.db", options=WorkerOptions(batch_size=3))
    parts.put({"a": "一", "b": "二"}, settle=3600)
    assert not parts.engine.worker.run_batch()
    parts.engine.start()
    parts.put({"c": "三"}, settle=3600)
    parts.until(lambda: parts.engine.work.waiting() == 0)
    assert parts.embedder.calls == 1
    parts.close()


def test_what_rests_goes_on_resting_while_others_are_due(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "homing.db", options=WorkerOptions(batch_size=3))
    parts.put({"typed": "a paragraph that is still being typed"}, settle=3600)
    parts.put(texts(10), priority=IMPORT)
    parts.engine.start()
    parts.until(lambda: parts.engine.work.waiting() == 1)
    assert "typed" not in parts.embedded()
    parts.close()


def test_what_rests_is_embedded_early_when_it_is_flushed_or_the_process_ends(parts: Parts) -> None:
    parts.put({"a": "一"}, settle=3600)
    assert parts.engine.flush()
    parts.put({"b": "二"}, settle=3600)
    assert parts.engine.worker.stop() == 0
    assert parts.embedded() == {"a": "一", "b": "二"}


class TestAModelThatFails:
    """Nothing is wrong with the texts: they are found by words, and wait for as long as it takes."""

    def test_it_loses_nothing_and_is_asked_again_when_it_is_back(self, parts: Parts) -> None:
        parts.embedder.fail_with = ProviderUnavailable("down")
        parts.put({"a": "他守着灯塔"})
        assert not parts.engine.flush()
        assert parts.engine.work.waiting() == 1
        found = parts.search("灯塔")
        assert [(hit.id, hit.pending) for hit in found] == [("a", True)]
        assert (found.degraded, found.reason) == (True, "vector:PROVIDER_UNAVAILABLE")
        parts.embedder.fail_with = None
        parts.engine.start()
        parts.until(lambda: parts.engine.work.waiting() == 0)
        assert parts.embedded() == {"a": "他守着灯塔"}

    @pytest.mark.parametrize(
        "error",
        [
            InvalidKey("no"),
            ModelNotReady("no"),
            ModelUnknown("no"),
            RateLimited("slow down", retry_after=0.0),
            Timeout("late"),
            DimensionMismatch("narrow"),
        ],
        ids=lambda error: error.code,
    )
    def test_it_never_makes_dead_letters(self, parts: Parts, error: Exception) -> None:
        parts.embedder.fail_with = error
        parts.put({"a": "text"})
        for _ in range(6):
            parts.engine.flush()
        assert parts.engine.work.dead_letters() == []
        assert parts.engine.work.waiting() == 1
        backlog = parts.engine.work.backlog()
        assert (backlog.failing, backlog.error) == (1, f"{error.code}: {error}")  # type: ignore[attr-defined]

    def test_it_is_said_once_while_it_lasts_and_not_once_for_each_collection(
        self, parts: Parts, caplog: pytest.LogCaptureFixture
    ) -> None:
        def warnings() -> int:
            return sum(DOWN in record.message for record in caplog.records if record.levelno >= logging.WARNING)

        with caplog.at_level(logging.WARNING):
            parts.embedder.fail_with = ProviderUnavailable("down")
            for collection in ("w", "x", "y", "z"):
                parts.put(texts(5), collection)
            for _ in range(3):
                assert not parts.engine.flush()
            assert warnings() == 1
            parts.embedder.fail_with = None
            assert parts.engine.flush()
            parts.embedder.fail_with = ProviderUnavailable("down again")
            parts.put({"a": "灯塔"})
            assert not parts.engine.flush()
        assert warnings() == 2

    def test_a_provider_may_send_us_away_but_not_for_ever(self, parts: Parts) -> None:
        parts.embedder.fail_with = RateLimited("slow down", retry_after=1e6)
        parts.put({"a": "text"})
        assert not parts.engine.flush()
        due = parts.engine.work.next_due()
        assert due is not None
        assert QUICK.retries.max_backoff < due <= MAX_RETRY_AFTER

    def test_one_that_is_gone_keeps_no_other_waiting(self, tmp_path: Path) -> None:
        def choose(identity: str) -> EmbeddingProvider:
            if identity in ("", FakeEmbedder().id):
                return FakeEmbedder()
            raise ModelNotReady(f"{identity} is not configured any more")

        before = Parts(tmp_path / "homing.db", FakeEmbedder(model="former"))
        before.put({"a": "他一个人守着灯塔"}, "former")
        assert before.engine.flush()
        parts = Parts(tmp_path / "homing.db", Chosen(FakeEmbedder(), choose))
        parts.put({"b": "海鸥每天清晨飞过"}, "former")
        parts.put({"c": "The market was loud"})
        parts.engine.worker.run_batch()
        assert parts.embedded() == {"c": "The market was loud"}
        assert parts.embedded("former") == {"a": "他一个人守着灯塔"}
        assert parts.engine.work.waiting("former", model="") == 1
        before.close()
        parts.close()

    @pytest.mark.parametrize("width", [32, 128])
    def test_vectors_of_a_wrong_width_are_put_nowhere(self, tmp_path: Path, width: int) -> None:
        class Wrong(FakeEmbedder):
            def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
                return FakeEmbedder(width).embed(texts)

        broken = Parts(tmp_path / "homing.db", Wrong())
        broken.put({"a": "灯塔"})
        assert not broken.engine.flush()
        assert broken.embedded() == {}
        found = broken.search("灯塔")
        assert ([hit.id for hit in found], found.reason) == (["a"], "vector:EMBEDDING_DIMENSION_MISMATCH")
        mended = Parts(tmp_path / "homing.db")
        assert mended.engine.flush()
        assert mended.embedded() == {"a": "灯塔"}
        broken.close()
        mended.close()

    def test_vectors_that_are_no_numbers_are_put_nowhere(self, tmp_path: Path) -> None:
        class Broken(FakeEmbedder):
            def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
                return np.full_like(super().embed(texts, kind=kind), np.nan)

        parts = Parts(tmp_path / "homing.db", Broken())
        parts.put({"a": "灯塔", "b": "花园"})
        for _ in range(QUICK.retries.attempts):
            parts.engine.flush()
        assert parts.embedded() == {}
        assert sorted(letter.id for letter in parts.engine.work.dead_letters()) == ["a", "b"]
        found = parts.search("灯塔")
        assert ([hit.id for hit in found], found.reason) == (["a"], "vector:INVALID_ARGUMENT")
        parts.close()


class TestADatabaseThatFails:
    """It costs a wait and nothing else."""

    def test_for_a_moment(self, tmp_path: Path) -> None:
        class Moody(SqliteStore):
            failures = 1

            def texts(self, collection: str, ids: Sequence[str], *, lacking: str = "") -> dict[str, str]:
                if self.failures:
                    self.failures -= 1
                    raise StoreError("not now")
                return super().texts(collection, ids, lacking=lacking)

        patient = WorkerOptions(retries=Retries(backoff=3600, max_backoff=3600))
        parts = Parts(tmp_path / "homing.db", options=patient, store=Moody)
        parts.put({"a": "灯塔"})
        assert not parts.engine.flush()
        assert parts.engine.work.backlog().failing == 1
        assert parts.engine.flush()
        assert parts.embedded() == {"a": "灯塔"}
        parts.close()

    def test_because_it_is_locked_in_the_middle_of_a_batch(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connections, "BUSY_MS", 50)
        said = threading.Event()
        listening = logging.Handler()
        listening.emit = lambda record: said.set()  # type: ignore[method-assign]
        logging.getLogger("homing.engine.worker").addHandler(listening)
        parts = Parts(tmp_path / "homing.db", Interrupted(lambda: other.execute("BEGIN IMMEDIATE")))
        other = apsw.Connection(str(tmp_path / "homing.db"))
        parts.put({"a": "灯塔"})
        parts.engine.start()
        # Neither the vector nor that it waits can be written.
        assert said.wait(SOON)
        logging.getLogger("homing.engine.worker").removeHandler(listening)
        assert parts.embedded() == {}
        other.execute("ROLLBACK")
        parts.until(lambda: parts.engine.work.waiting() == 0)
        assert parts.embedded() == {"a": "灯塔"}
        other.close()
        parts.close()


class TestEnding:
    """What this process wrote is embedded, within a deadline; what is left is kept."""

    def test_stop_embeds_what_is_left(self, parts: Parts) -> None:
        parts.put(texts(50))
        parts.engine.start()
        assert parts.engine.worker.stop() == 0
        assert len(parts.embedded()) == 50
        assert not parts.engine.worker.running

    def test_stop_without_the_time_for_it_says_what_is_left_and_keeps_it(self, tmp_path: Path) -> None:
        held = Held()
        parts = Parts(tmp_path / "homing.db", held)
        parts.put(texts(9))
        parts.engine.start()
        assert held.entered.wait(SOON)
        assert parts.engine.worker.stop(0) == 9
        held.go.set()
        parts.engine.start()
        assert parts.engine.worker.stop() == 0
        assert len(parts.embedded()) == 9
        parts.close()

    def test_a_model_that_does_not_answer_keeps_nobody_longer_than_the_time_for_it(self, tmp_path: Path) -> None:
        held = Held()
        parts = Parts(tmp_path / "homing.db", held)
        parts.put(texts(3))
        assert not parts.engine.flush(0.01)
        assert parts.engine.worker.stop(0.01) == 3
        held.go.set()
        assert parts.engine.flush()
        assert len(parts.embedded()) == 3
        parts.close()

    def test_what_outlives_its_stop_is_free_for_the_next_at_once(self, tmp_path: Path) -> None:
        held = Held()
        parts = Parts(tmp_path / "homing.db", held)
        parts.put(texts(3))
        parts.engine.start()
        assert held.entered.wait(SOON)
        assert parts.engine.worker.stop(0) == 3
        parts.store.close()
        again = Parts(tmp_path / "homing.db")
        assert again.engine.flush()
        held.go.set()
        assert len(again.embedded()) == 3
        again.close()

    def test_stop_without_draining_finishes_the_batch_under_way_and_keeps_the_rest(self, tmp_path: Path) -> None:
        held = Held()
        parts = Parts(tmp_path / "homing.db", held)
        parts.put(texts(9))
        parts.engine.start()
        assert held.entered.wait(SOON)
        assert parts.engine.worker.stop(0, drain=False) == 9
        held.go.set()
        parts.until(lambda: not parts.engine.worker.at_work)
        assert parts.engine.work.waiting() == 5
        assert len(parts.embedded()) == 4
        parts.close()

    def test_a_process_that_only_reads_embeds_nothing(self, tmp_path: Path) -> None:
        writer = Parts(tmp_path / "homing.db", FakeEmbedder(fail_with=ProviderUnavailable("down")))
        writer.put({"a": "灯塔"})
        assert writer.engine.close() == 1
        reader = Parts(tmp_path / "homing.db")
        assert [hit.id for hit in reader.search("灯塔")] == ["a"]
        assert not reader.engine.worker.running
        assert reader.engine.close() == 1
        assert reader.embedder.texts == ["灯塔"]
        writer.close()
        reader.close()

    def test_a_store_that_is_closed_already_is_no_reason_not_to_close(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        parts = Parts(tmp_path / "homing.db")
        parts.put({"a": "灯塔"})
        parts.store.close()
        with caplog.at_level(logging.WARNING):
            assert parts.engine.close() == 0
        assert "without knowing what still waits" in caplog.text

    def test_closing_twice_is_fine(self, parts: Parts) -> None:
        assert parts.engine.close() == parts.engine.close() == 0


def test_a_backlog_is_visible_and_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    held = Held()
    parts = Parts(tmp_path / "homing.db", held, WorkerOptions(full=5, batch_size=1))
    parts.put(texts(6))
    parts.put(texts(2), "others")
    work = parts.engine.work
    assert (work.backlog().waiting, work.backlog("notes").waiting, work.waiting("others")) == (8, 6, 2)
    with caplog.at_level(logging.WARNING):
        parts.engine.start()
        assert held.entered.wait(SOON)
        held.go.set()
        parts.until(lambda: work.waiting() == 0)
    assert [record.message for record in caplog.records] == ["embedding is behind: 8 texts wait for their vectors"]
    parts.close()


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": 0},
        {"batch_bytes": 0},
        {"threads": 0},
        {"retries": Retries(attempts=0)},
        {"retries": Retries(backoff=0.0)},
        {"retries": Retries(backoff=2.0, max_backoff=1.0)},
    ],
    ids=str,
)
def test_nonsense_options_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidArgument):
        WorkerOptions(**wrong)  # type: ignore[arg-type]
