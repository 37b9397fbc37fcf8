"""What cannot be embedded is given up alone, is found by words, and waits for a person."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from homing.engine.batch import Retries
from homing.engine.worker import WorkerOptions
from tests.engine.parts import Choosy, Parts


@pytest.fixture
def choosy() -> Choosy:
    return Choosy()


@pytest.fixture
def parts(tmp_path: Path, choosy: Choosy) -> Iterator[Parts]:
    patient = Retries(attempts=2, backoff=3600, max_backoff=3600)
    parts = Parts(tmp_path / "homing.db", choosy, WorkerOptions(batch_size=8, retries=patient))
    yield parts
    parts.close()


def give_up(parts: Parts) -> None:
    assert not parts.engine.flush()
    assert parts.engine.flush()


def test_a_poison_text_ends_alone_after_some_tries(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    parts.put({str(number): "有毒" if number == 5 else f"好的 {number}" for number in range(8)})
    with caplog.at_level(logging.WARNING):
        give_up(parts)
    assert len(parts.embedded()) == 7
    [letter] = parts.engine.work.dead_letters()
    assert (letter.collection, letter.id, letter.attempts) == ("notes", "5", 2)
    assert letter.error == "EMBEDDING_FAILED: cannot embed this"
    assert [record.message for record in caplog.records] == [
        "giving up on embedding notes/5: EMBEDDING_FAILED: cannot embed this"
    ]
    backlog = parts.engine.work.backlog()
    assert (backlog.waiting, backlog.dead, backlog.error) == (0, 1, letter.error)


def test_a_dead_letter_is_found_by_its_words(parts: Parts) -> None:
    parts.put({"a": "有毒的蘑菇", "b": "好吃的蘑菇"})
    give_up(parts)
    found = parts.search("蘑菇")
    assert {hit.id: hit.score is None for hit in found} == {"a": True, "b": False}
    assert not found.degraded


def test_dead_letters_are_tried_again_when_somebody_asks(parts: Parts, choosy: Choosy) -> None:
    parts.put({"a": "毒一", "b": "毒二"})
    give_up(parts)
    assert parts.engine.flush()
    assert len(parts.engine.work.dead_letters()) == 2
    choosy.cured = True
    assert parts.engine.work.retry_dead() == 2
    assert parts.engine.work.retry_dead() == 0
    assert parts.engine.flush()
    assert parts.embedded() == {"a": "毒一", "b": "毒二"}
    assert parts.engine.work.dead_letters() == []


def test_a_newer_text_takes_its_place(parts: Parts) -> None:
    parts.put({"a": "毒一", "b": "毒二"})
    give_up(parts)
    parts.put({"a": "解药"})
    assert [letter.id for letter in parts.engine.work.dead_letters()] == ["b"]
    assert parts.engine.flush()
    assert parts.embedded() == {"a": "解药"}


def test_a_deleted_text_is_no_dead_letter(parts: Parts) -> None:
    parts.put({"a": "毒一"})
    give_up(parts)
    parts.engine.collection("notes").delete(["a"])
    assert parts.engine.work.dead_letters() == []
