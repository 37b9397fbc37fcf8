"""Seed 001's buffer, a thin door to the engine: takes requests one by one, embeds them in batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from homing.engine import Engine
from homing.errors import InvalidArgument, ProviderUnavailable
from homing.memory import BufferOptions, EmbeddingBuffer, EmbedRequest
from homing.stores.sqlite.store import SqliteStore
from homing.testing.fake import FakeEmbedder
from tests.engine.parts import SOON, Choosy


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "homing.db")
    yield store
    store.close()


def note(key: str, text: str | None) -> EmbedRequest:
    return EmbedRequest("notes", key, text, {"source": "test"})


def embedded(store: SqliteStore) -> dict[str, str]:
    return {one.id: one.text for one in store.records("notes") if one.embedding is not None}


@pytest.mark.parametrize("options", [BufferOptions(batch_size=3, batch_seconds=600), BufferOptions(batch_seconds=0.05)])
def test_a_batch_goes_out_when_it_is_full_or_when_its_time_has_come(store: SqliteStore, options: BufferOptions) -> None:
    embedder = FakeEmbedder()
    buffer = EmbeddingBuffer(embedder, store, options)
    buffer.start()
    for key, text in (("a", "一"), ("b", "二"), ("c", "三")):
        buffer.enqueue(note(key, text))
    watching = Engine(store, None)
    assert watching.worker.wait(lambda: buffer.pending == 0, SOON)
    assert embedded(store) == {"a": "一", "b": "二", "c": "三"}
    if options.batch_size == 3:
        assert embedder.calls == 1
    assert buffer.stop() == 0


def test_before_it_is_started_requests_are_durable_and_found_by_words(store: SqliteStore) -> None:
    embedder = FakeEmbedder()
    buffer = EmbeddingBuffer(embedder, store)
    buffer.enqueue_all([note("a", "他守着燈塔"), EmbedRequest("others", "b", "花园")])
    assert (buffer.pending, embedder.calls) == (2, 0)
    assert [match.id for match in store.search_text("notes", "灯塔")] == ["a"]
    assert buffer.flush()
    assert (buffer.pending, embedder.calls) == (0, 1)


def test_stop_embeds_what_is_left(store: SqliteStore) -> None:
    buffer = EmbeddingBuffer(FakeEmbedder(), store, BufferOptions(batch_size=100, batch_seconds=600))
    buffer.start()
    buffer.enqueue_all(note(str(number), f"text {number}") for number in range(250))
    assert buffer.stop() == 0
    assert len(embedded(store)) == 250


def test_the_last_request_for_an_id_counts_and_none_removes(store: SqliteStore) -> None:
    embedder = FakeEmbedder()
    buffer = EmbeddingBuffer(embedder, store)
    buffer.enqueue_all([note("a", "旧的"), note("a", "新的"), note("b", "秘密"), note("c", None), note("b", None)])
    assert buffer.pending == 1
    assert buffer.flush()
    assert embedder.texts == ["新的"]
    embedder.fail_with = ProviderUnavailable("down")
    buffer.enqueue(note("a", None))
    assert list(store.records("notes")) == []
    assert buffer.pending == 0


def test_what_was_given_up_is_kept_and_can_be_tried_again(store: SqliteStore) -> None:
    choosy = Choosy()
    buffer = EmbeddingBuffer(choosy, store, BufferOptions(attempts=1))
    buffer.enqueue_all([note("a", "有毒"), note("b", "好的")])
    assert buffer.flush()
    assert [(letter.collection, letter.id) for letter in buffer.dead_letters()] == [("notes", "a")]
    choosy.cured = True
    assert buffer.retry_dead_letters() == 1
    assert buffer.flush()
    assert embedded(store) == {"a": "有毒", "b": "好的"}


def test_without_a_provider_texts_are_kept_for_words(store: SqliteStore) -> None:
    buffer = EmbeddingBuffer(None, store)
    buffer.start()
    buffer.enqueue(note("a", "他守着燈塔"))
    assert buffer.pending == 0
    assert buffer.flush()
    assert [match.id for match in store.search_text("notes", "灯塔")] == ["a"]


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"backoff": 0.0}, {"attempts": 0}, {"batch_seconds": -1.0}])
def test_nonsense_options_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument):
        BufferOptions(**wrong)  # type: ignore[arg-type]
