"""The clock of the machine is set, in both directions: nothing waits for it, and nothing is lost."""

from __future__ import annotations

import socket
import time
from contextlib import closing
from pathlib import Path

import pytest

import homing
from homing.config import Settings
from homing.database.sqlite import SqliteDatabase
from homing.engine.work import Work
from homing.errors import TooManyRequests, Unauthorized
from homing.server.job import JobView
from homing.server.job_log import JobLog, Order
from homing.server.rate_limit import RateLimit
from homing.server.tokens import Tokens
from homing.testing.fake import FakeEmbedder

YEAR = 365 * 86_400.0


def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How many seconds the clock of the machine is off, for the test to change."""
    real, off = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + off[0])
    return off


@pytest.mark.parametrize("jumps", [(YEAR, -YEAR), (-YEAR, 2 * YEAR)])
def test_texts_are_saved_found_and_embedded_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jumps: tuple[float, float]
) -> None:
    off = clock(monkeypatch)
    with homing.open(tmp_path / "data", settings=Settings(), embedder=FakeEmbedder()) as app:
        for number, jump in enumerate((0.0, *jumps)):
            app.memory.remember("knowledge", f"灯塔 lamp {number}")
            off[0] += jump
            app.documents.save("novel", f"ch{number}", f"灯塔 lighthouse {number}")
            app.documents.flush()
            assert app.engine.flush()
            assert not app.engine.work.waiting()
        assert len(app.documents.search("novel", "灯塔")) == 3
        assert len(app.memory.recall("灯塔 lamp")) == 3
        assert app.store.check() == []


@pytest.mark.parametrize("jump", [YEAR, -YEAR])
def test_what_a_worker_of_another_machine_held_is_free_and_what_was_postponed_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    with closing(SqliteDatabase(tmp_path / "homing.db")) as database:
        # Nobody here can see whether that machine's worker is alive.
        monkeypatch.setattr(socket, "gethostname", lambda: "another")
        theirs = Work(database)
        monkeypatch.undo()
        off = clock(monkeypatch)
        ours = Work(database)
        database.write(lambda own: theirs.add(own, "notes", {"held": 1, "postponed": 1}))
        theirs.postpone([one for one in theirs.claim(9, 9) if one.id == "postponed"], "down", seconds=60, counts=False)
        assert (ours.claim(9, 9), ours.held()) == ([], True)
        assert (ours.next_due() or 0) > 0
        off[0] = jump
        assert not ours.held()
        assert ours.next_due() == 0
        assert {one.id for one in ours.claim(9, 9)} == {"held", "postponed"}


@pytest.mark.parametrize("jump", [YEAR, -YEAR])
def test_a_job_of_a_server_that_is_gone_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    with closing(SqliteDatabase(tmp_path / "homing.db")) as database:
        monkeypatch.setattr(socket, "gethostname", lambda: "another")
        theirs = JobLog(database)
        monkeypatch.undo()
        off = clock(monkeypatch)
        view = JobView("j1", "scan", "skills", "owner", "running", created=time.time())
        theirs.begin(view, shared=False, order=Order("skills.scan", "{}", "write"))
        ours = JobLog(database)
        assert ours.take_over() == []
        off[0] = jump
        assert [one.fields["id"] for one in ours.take_over()] == ["j1"]


@pytest.mark.parametrize("jump", [YEAR, -YEAR])
def test_tokens_go_by_the_clock_and_rates_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    off = clock(monkeypatch)
    with homing.open(tmp_path / "data", settings=Settings()) as app:
        made = Tokens(app.database, clock=lambda: time.time()).create("lin", "read", seconds=3600)
        rate = RateLimit(app.database, 0.001, 1, clock=time.monotonic)
        rate.take("lin")
        off[0] = jump
        with pytest.raises(TooManyRequests):
            rate.take("lin")
        tokens = Tokens(app.database, clock=lambda: time.time())
        if jump > 0:
            with pytest.raises(Unauthorized, match="expired"):
                tokens.check(made.secret)
            assert tokens.check(tokens.rotate(made.token.id).secret).user == "lin"
        else:
            assert tokens.check(made.secret).user == "lin"
