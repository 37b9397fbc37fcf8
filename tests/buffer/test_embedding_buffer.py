"""The buffer: durable at once, embedded in batches in the background, nothing lost, nothing done twice."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path

import apsw
import pytest

from homing.buffer.embedding_buffer import BufferOptions, EmbeddingBuffer
from homing.buffer.outbox import EmbedRequest
from homing.database.sqlite import SqliteDatabase
from homing.database.sqlite import database as connections
from homing.embedders.chosen import Chosen
from homing.embedders.provider import EmbeddingProvider, Kind
from homing.errors import (
    InvalidArgument,
    InvalidKey,
    ModelNotReady,
    ProviderUnavailable,
    RateLimited,
    StoreError,
)
from homing.records import VectorRecord
from homing.stores.sqlite.store import SqliteStore
from homing.testing.fake import FakeEmbedder
from homing.vectors import Matrix
from tests.buffer.killed_writers import drain, kill
from tests.buffer.parts import QUICK, Parts, note, until


def test_what_is_enqueued_is_embedded_in_the_background(parts: Parts) -> None:
    parts.buffer.start()
    parts.buffer.enqueue(note("a", "他一个人守着灯塔"))
    until(lambda: parts.stored() == {"a": "他一个人守着灯塔"})
    until(lambda: parts.buffer.pending == 0)


def test_requests_wait_for_a_full_batch_or_for_the_time(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "homing.db", options=BufferOptions(batch_size=3, batch_seconds=600))
    parts.buffer.start()
    parts.buffer.enqueue(note("a", "一"))
    parts.buffer.enqueue(note("b", "二"))
    time.sleep(0.6)
    assert parts.provider.calls == 0
    parts.buffer.enqueue(note("c", "三"))
    until(lambda: len(parts.stored()) == 3)
    assert parts.provider.calls == 1
    parts.close()


def test_requests_for_several_collections_go_out_in_one_batch(parts: Parts) -> None:
    parts.buffer.enqueue_all(EmbedRequest(collection, "a", f"text in {collection}") for collection in ("x", "y", "z"))
    assert parts.buffer.flush()
    assert parts.provider.calls == 1
    assert [info.embedded for info in parts.store.collections()] == [1, 1, 1]


def test_a_batch_is_bounded_in_bytes(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "homing.db", options=BufferOptions(batch_size=100, batch_bytes=10_000))
    parts.buffer.enqueue_all(note(str(number), f"{number}" * 6_000) for number in range(4))
    assert parts.buffer.flush()
    assert parts.provider.calls == 4
    parts.close()


def test_stop_drains_what_is_left(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "homing.db", options=BufferOptions(batch_size=100, batch_seconds=600))
    parts.buffer.start()
    parts.buffer.enqueue_all(note(str(number), f"text {number}") for number in range(250))
    assert parts.buffer.stop() == 0
    assert len(parts.stored()) == 250
    parts.close()


def test_stop_with_a_timeout_says_what_is_left_and_keeps_it(tmp_path: Path) -> None:
    slow = FakeEmbedder(delay=0.5)
    parts = Parts(tmp_path / "homing.db", slow, BufferOptions(batch_size=1))
    parts.buffer.start()
    parts.buffer.enqueue_all(note(str(number), f"text {number}") for number in range(40))
    left = parts.buffer.stop(0.2)
    assert 0 < left <= 40
    until(lambda: parts.buffer.backlog().waiting < 40)
    slow.delay = 0
    parts.buffer.start()
    assert parts.buffer.stop() == 0
    parts.close()


def test_newer_text_for_an_id_supersedes_what_waits(parts: Parts) -> None:
    parts.buffer.enqueue(note("a", "旧的"))
    parts.buffer.enqueue(note("a", "新的"))
    assert parts.buffer.pending == 1
    assert parts.buffer.flush()
    assert parts.provider.texts == ["新的"]
    assert parts.stored() == {"a": "新的"}


def test_text_that_changes_while_it_is_embedded_is_embedded_again(parts: Parts) -> None:
    parts.provider.delay = 0.3
    parts.buffer.start()
    parts.buffer.enqueue(note("a", "旧的"))
    until(lambda: parts.provider.calls == 1)
    parts.buffer.enqueue(note("a", "新的"))
    assert parts.buffer.flush(10)
    assert parts.stored() == {"a": "新的"}


def test_a_dead_provider_loses_nothing_and_keywords_find_it_meanwhile(parts: Parts) -> None:
    parts.provider.fail_with = ProviderUnavailable("down")
    parts.buffer.enqueue(note("a", "他守着灯塔"))
    assert not parts.buffer.flush()
    assert parts.buffer.pending == 1
    assert [match.id for match in parts.store.search_text("notes", "灯塔")] == ["a"]
    parts.provider.fail_with = None
    assert parts.buffer.flush()
    assert parts.stored() == {"a": "他守着灯塔"}


@pytest.mark.parametrize("error", [InvalidKey("no"), RateLimited("slow down", retry_after=0.0)])
def test_what_is_not_the_texts_fault_never_makes_dead_letters(parts: Parts, error: Exception) -> None:
    parts.provider.fail_with = error
    parts.buffer.enqueue(note("a", "text"))
    for _ in range(6):
        parts.buffer.flush()
    assert parts.buffer.dead_letters() == []
    assert parts.buffer.pending == 1


def test_what_was_stored_but_not_taken_off_the_queue_is_not_embedded_again(parts: Parts) -> None:
    parts.buffer.enqueue(note("a", "灯塔"))
    parts.buffer.flush()
    parts.buffer.enqueue(note("a", "灯塔"))
    assert parts.buffer.flush()
    assert parts.provider.texts == ["灯塔"]


def test_a_request_joins_the_callers_transaction(parts: Parts) -> None:
    class Regret(Exception):
        pass

    def change_of_mind() -> None:
        with parts.database.writing() as connection:
            parts.buffer.enqueue_within(connection, [note("a", "text")])
            raise Regret

    with pytest.raises(Regret):
        change_of_mind()
    assert parts.buffer.pending == 0


def test_two_workers_of_two_buffers_do_no_work_twice(tmp_path: Path) -> None:
    one = Parts(tmp_path / "homing.db", FakeEmbedder(delay=0.01))
    two = Parts(tmp_path / "homing.db", FakeEmbedder(delay=0.01))
    one.buffer.start()
    two.buffer.start()
    one.buffer.enqueue_all(note(str(number), f"text {number}") for number in range(200))
    until(lambda: one.buffer.pending == 0)
    assert sorted(one.provider.texts + two.provider.texts) == sorted(f"text {number}" for number in range(200))
    one.close()
    two.close()


def test_a_backlog_is_visible(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    parts = Parts(tmp_path / "homing.db", options=BufferOptions(full=5))
    parts.buffer.enqueue_all(note(str(number), "text") for number in range(6))
    backlog = parts.buffer.backlog()
    assert (backlog.waiting, backlog.failing, backlog.dead) == (6, 0, 0)
    with caplog.at_level(logging.WARNING):
        parts.buffer.flush()
    assert "6 requests wait" in caplog.text
    parts.close()


def test_a_removal_takes_the_vector_away_whatever_was_under_way(parts: Parts) -> None:
    parts.provider.delay = 0.3
    parts.buffer.start()
    parts.buffer.enqueue(note("a", "秘密"))
    until(lambda: parts.provider.calls == 1)
    parts.buffer.enqueue(EmbedRequest("notes", "a", None))
    assert parts.buffer.flush(10)
    assert list(parts.store.records("notes")) == []


def test_a_removal_does_not_wait_for_a_dead_provider(parts: Parts) -> None:
    parts.buffer.enqueue(note("a", "秘密"))
    parts.buffer.flush()
    parts.provider.fail_with = ProviderUnavailable("down")
    parts.buffer.enqueue_all([EmbedRequest("notes", "a", None), note("b", "新的")])
    parts.buffer.flush()
    assert [record.id for record in parts.store.records("notes")] == ["b"]


def test_a_collection_whose_model_is_gone_keeps_no_other_waiting(tmp_path: Path) -> None:
    def choose(identity: str) -> EmbeddingProvider:
        if identity in ("", FakeEmbedder().id):
            return FakeEmbedder()
        raise ModelNotReady(f"{identity} is not configured any more")

    parts = Parts(tmp_path / "homing.db", FakeEmbedder(model="former"))
    parts.buffer.enqueue_all([EmbedRequest("former", key, "他一个人守着灯塔") for key in ("a", "z")])
    assert parts.buffer.flush()
    now = EmbeddingBuffer(Chosen(FakeEmbedder(), choose), parts.store, parts.database, QUICK)
    now.enqueue_all(
        [
            EmbedRequest("former", "b", "海鸥每天清晨飞过"),
            note("c", "The market was loud"),
            EmbedRequest("former", "a", None),
        ]
    )
    assert not now.flush()
    assert parts.stored() == {"c": "The market was loud"}
    assert {one.id: one.embedding is None for one in parts.store.records("former")} == {"b": True, "z": False}
    assert now.waiting("former") == 1
    parts.close()


def test_without_a_provider_texts_are_kept_for_keywords(tmp_path: Path) -> None:
    store, database = SqliteStore(tmp_path / "homing.db"), SqliteDatabase(tmp_path / "homing.db")
    buffer = EmbeddingBuffer(None, store, database)
    buffer.enqueue(note("a", "他守着燈塔"))
    assert buffer.flush()
    assert [match.id for match in store.search_text("notes", "灯塔")] == ["a"]
    database.close()
    store.close()


def test_a_store_that_fails_for_a_moment_costs_a_wait_and_nothing_else(tmp_path: Path) -> None:
    class Moody(SqliteStore):
        failures = 1

        def get(self, collection: str, ids: Sequence[str]) -> list[VectorRecord]:
            if self.failures:
                self.failures -= 1
                raise StoreError("not now")
            return super().get(collection, ids)

    store, database = Moody(tmp_path / "homing.db"), SqliteDatabase(tmp_path / "homing.db")
    buffer = EmbeddingBuffer(FakeEmbedder(), store, database)
    buffer.enqueue(note("a", "text"))
    assert not buffer.flush()
    assert buffer.backlog().failing == 1
    assert buffer.flush()
    database.close()
    store.close()


def test_a_database_that_is_locked_in_the_middle_of_a_batch_costs_a_wait_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "BUSY_MS", 50)

    class Locked(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
            if self.calls == 0:
                other.execute("BEGIN IMMEDIATE")
            return super().embed(texts, kind=kind)

    parts = Parts(tmp_path / "homing.db", Locked())
    other = apsw.Connection(str(tmp_path / "homing.db"))
    parts.buffer.enqueue(note("a", "灯塔"))
    parts.buffer.start()
    # Neither the vector nor that it waits can be written.
    until(lambda: "embedding buffer: " in caplog.text)
    other.execute("ROLLBACK")
    until(lambda: parts.stored() == {"a": "灯塔"})
    until(lambda: parts.buffer.pending == 0)
    other.close()
    parts.close()


def test_stop_without_draining_finishes_the_batch_under_way_and_keeps_the_rest(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "homing.db", FakeEmbedder(delay=0.2), BufferOptions(batch_size=2, batch_seconds=0.0))
    parts.buffer.enqueue_all(note(str(number), f"text {number}") for number in range(9))
    parts.buffer.start()
    until(lambda: parts.provider.calls == 1)
    assert parts.buffer.stop(drain=False) == 7
    assert len(parts.stored()) == 2
    parts.close()


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"backoff": 0.0}, {"attempts": 0}, {"batch_seconds": -1.0}])
def test_nonsense_options_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument):
        BufferOptions(**wrong)  # type: ignore[arg-type]


@pytest.mark.slow
def test_killed_at_random_moments_nothing_saved_is_lost_and_nothing_deleted_stays(tmp_path: Path) -> None:
    aftermath = kill(tmp_path, rounds=15)
    assert aftermath.acknowledged > 15
    assert aftermath.whole, aftermath


@pytest.mark.slow
def test_two_processes_share_a_queue_and_do_no_work_twice(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "homing.db")
    parts.buffer.enqueue_all(note(str(number), f"text {number}") for number in range(300))
    embedded = drain(tmp_path, processes=3)
    assert len(embedded) == 300
    assert set(embedded.values()) == {1}
    assert len(parts.stored()) == 300
    parts.close()
