"""What cannot be embedded, or removed, is given up alone, and kept for a person."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from homing.buffer.embedding_buffer import BufferOptions
from homing.buffer.outbox import STEPS, DeadLetter, EmbedRequest, Outbox
from homing.database.sqlite import SqliteDatabase
from tests.buffer.parts import Choosy, Parts, note, until


def test_a_poison_text_ends_alone_in_the_dead_letters(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    parts = Parts(tmp_path / "homing.db", Choosy(), BufferOptions(batch_size=8, attempts=2))
    parts.buffer.enqueue_all(note(str(number), "有毒" if number == 5 else f"好的 {number}") for number in range(8))
    with caplog.at_level(logging.WARNING):
        assert not parts.buffer.flush()
        assert len(parts.stored()) == 7
        assert parts.buffer.flush()
    assert len(parts.stored()) == 7
    [letter] = parts.buffer.dead_letters()
    assert letter.request.id == "5"
    assert letter.error == "EMBEDDING_FAILED: cannot embed this"
    assert "giving up on notes/5" in caplog.text
    parts.close()


def test_dead_letters_can_be_retried_and_newer_text_revives_them(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "homing.db", Choosy(), BufferOptions(attempts=1))
    parts.buffer.enqueue_all([note("a", "毒一"), note("b", "毒二")])
    parts.buffer.flush()
    assert len(parts.buffer.dead_letters()) == 2
    parts.buffer.enqueue(note("a", "解药"))
    assert [letter.request.id for letter in parts.buffer.dead_letters()] == ["b"]
    assert parts.buffer.retry_dead_letters() == 1
    parts.buffer.flush()
    assert parts.stored() == {"a": "解药"}
    assert [letter.request.id for letter in parts.buffer.dead_letters()] == ["b"]
    parts.close()


def test_a_removal_that_cannot_be_done_ends_alone_in_the_dead_letters(parts: Parts) -> None:
    requests = [note("a", "灯塔"), EmbedRequest("notes", "half \0 a name", None), note("b", "lighthouse")]
    parts.buffer.enqueue_all(requests)
    parts.buffer.start()
    # What came with it is embedded, and nothing waits for a worker that gave up in the middle.
    until(lambda: parts.stored() == {"a": "灯塔", "b": "lighthouse"})
    until(lambda: parts.buffer.pending == 0)
    [letter] = parts.buffer.dead_letters()
    assert (letter.request.id, letter.request.text) == ("half \0 a name", None)
    assert "NUL" in letter.error
    assert parts.buffer.waiting("notes") == 0
    assert parts.buffer.waiting_of("notes", [letter.request.id]) == set()
    assert parts.buffer.retry_dead_letters() == 1


def test_dead_letters_of_an_older_file_are_kept(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "homing.db")
    database.migrate("outbox", STEPS[:1])
    with database.writing() as connection:
        connection.execute("INSERT INTO dead_letters VALUES ('notes', 'a', '毒', '{}', 1.0, 2.0, 3, 'no')")
    [letter] = Outbox(database).dead_letters()
    assert letter == DeadLetter(EmbedRequest("notes", "a", "毒"), "no", 3, 2.0)
    database.close()
