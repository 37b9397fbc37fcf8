"""Claims: each row is worked on by one worker at a time, and by another one when that is gone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from homing.database.sqlite import SqliteDatabase
from homing.engine.processes import this_process
from homing.engine.work import Item, Work
from tests.engine.parts import Held, Parts
from tests.forked import Process, start_python

ROOT = Path(__file__).parents[2]
PLENTY = 1 << 30

CLAIMS = """
import sys
from homing.database.sqlite import SqliteDatabase
from homing.engine.work import Work

print(len(Work(SqliteDatabase(sys.argv[1])).claim(3, 1 << 30)), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database in which ten texts wait."""
    parts = Parts(tmp_path / "homing.db")
    parts.put({str(number): f"text {number}" for number in range(10)})
    parts.store.close()
    return tmp_path / "homing.db"


@pytest.fixture
def database(path: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(path)
    yield database
    database.close()


@contextmanager
def another_process(path: Path) -> Iterator[Process]:
    """A process that has claimed three of them and lives until it is killed."""
    process = start_python(
        ["-c", CLAIMS, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert process.stdout.readline() == "3\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def ids(items: list[Item]) -> set[str]:
    return {item.id for item in items}


def test_claims_of_several_workers_never_overlap(path: Path) -> None:
    parts = Parts(path)
    parts.put({str(number): f"text {number}" for number in range(300)})
    databases = [SqliteDatabase(path) for _ in range(4)]
    workers = [Work(database) for database in databases]

    def claim_all(work: Work) -> list[str]:
        claimed: list[str] = []
        while items := work.claim(7, PLENTY):
            claimed += [item.id for item in items]
        return claimed

    with ThreadPoolExecutor(len(workers)) as pool:
        claimed = [one for some in pool.map(claim_all, workers) for one in some]
    assert sorted(claimed) == sorted(str(number) for number in range(300))
    for database in databases:
        database.close()
    parts.close()


def test_what_a_living_process_holds_is_left_to_it(path: Path, database: SqliteDatabase) -> None:
    with another_process(path):
        assert len(Work(database).claim(100, PLENTY)) == 7


def test_what_a_killed_process_held_is_taken_over_at_once(path: Path, database: SqliteDatabase) -> None:
    with another_process(path) as process:
        process.kill()
        process.wait()
        assert len(Work(database).claim(100, PLENTY)) == 10


def test_a_process_that_has_the_number_of_a_dead_one_is_not_taken_for_it(database: SqliteDatabase) -> None:
    assert len(Work(database).claim(3, PLENTY)) == 3
    # As in a container that was started again: the same machine, the same number, another process.
    former = f"{this_process().rpartition(':')[0]}:00000000:00000000"
    database.write(lambda transaction: transaction.rows("UPDATE work SET owner = $1 WHERE owner <> ''", former))
    assert len(Work(database).claim(100, PLENTY)) == 10


def test_what_a_process_held_when_the_machine_went_down_is_free(database: SqliteDatabase) -> None:
    assert len(Work(database).claim(3, PLENTY)) == 3
    host, _, rest = this_process().split(":", 2)
    former = f"{host}:00000000:{rest}:0"
    database.write(lambda transaction: transaction.rows("UPDATE work SET owner = $1 WHERE owner <> ''", former))
    assert len(Work(database).claim(100, PLENTY)) == 10


@pytest.mark.slow
def test_a_container_does_not_take_others_of_its_host_name_for_dead(path: Path, database: SqliteDatabase) -> None:
    # The same host name and other process numbers: ours is nobody's there.
    contained = ["unshare", "--pid", "--fork"]
    if shutil.which("unshare") is None or subprocess.run([*contained, "true"], capture_output=True).returncode:
        pytest.skip("this account may not make a namespace of process numbers")
    assert len(Work(database).claim(3, PLENTY)) == 3
    claims = CLAIMS.replace("claim(3,", "claim(100,")
    done = subprocess.run(
        [*contained, sys.executable, "-c", claims, str(path)], input="", capture_output=True, text=True, check=True
    )
    assert done.stdout == "7\n"


def test_a_machine_that_is_silent_keeps_what_it_holds_until_its_lease_ends(database: SqliteDatabase) -> None:
    work = Work(database)
    assert len(work.claim(3, PLENTY)) == 3
    database.write(lambda transaction: transaction.rows("UPDATE work SET owner = 'elsewhere:1:0:0' WHERE owner <> ''"))
    assert len(work.claim(100, PLENTY)) == 7
    database.write(lambda transaction: transaction.rows("UPDATE work SET leased = 1 WHERE owner LIKE 'elsewhere%'"))
    assert len(work.claim(100, PLENTY)) == 3


def test_a_worker_that_was_too_slow_undoes_nothing(database: SqliteDatabase) -> None:
    slow, quick = Work(database, lease=0.0), Work(database)
    late = slow.claim(2, PLENTY)
    again = quick.claim(10, PLENTY)
    assert ids(late) <= ids(again)
    slow.postpone(late, "late", seconds=0.0, counts=True)
    slow.release(late)
    assert Work(database).claim(10, PLENTY) == []
    quick.done(again)
    assert quick.waiting() == 0


def test_what_is_asked_for_again_while_it_is_held_stays(database: SqliteDatabase) -> None:
    work = Work(database)
    [held] = work.claim(1, PLENTY)
    database.write(lambda transaction: work.add(transaction, "notes", {held.id: 1}))
    assert held.id not in ids(work.claim(100, PLENTY))
    work.done([held])
    work.dead_letter(held, "too late")
    assert work.dead_letters() == []
    assert ids(work.claim(100, PLENTY)) == {held.id}


def test_a_database_has_one_clock(database: SqliteDatabase) -> None:
    work = Work(database)
    work.done(work.claim(9, PLENTY))
    [last] = work.claim(1, PLENTY)
    work.postpone([last], "later", seconds=3600, counts=False)
    assert work.claim(1, PLENTY) == []
    due = work.next_due()
    assert due is not None
    assert 0 < due <= 3600
    work.flush()
    assert work.next_due() == 0.0
    assert ids(work.claim(1, PLENTY)) == {last.id}


def test_two_engines_embed_each_text_once(tmp_path: Path) -> None:
    one, two = Parts(tmp_path / "homing.db"), Parts(tmp_path / "homing.db")
    one.put({str(number): f"text {number}" for number in range(200)})
    one.engine.start()
    two.engine.start()
    one.until(lambda: one.engine.work.waiting() == 0)
    assert sorted(one.embedder.texts + two.embedder.texts) == sorted(f"text {number}" for number in range(200))
    assert len(two.embedded()) == 200
    one.close()
    two.close()


def test_what_one_engine_is_slow_with_does_not_keep_another_from_the_rest(tmp_path: Path) -> None:
    held = Held()
    one, two = Parts(tmp_path / "homing.db", held), Parts(tmp_path / "homing.db")
    one.put({str(number): f"text {number}" for number in range(12)})
    one.engine.start()
    assert held.entered.wait(120)
    while two.engine.worker.run_batch(early=True):
        continue
    assert one.engine.work.waiting() == 4
    assert len(two.embedded()) == 8
    held.go.set()
    one.until(lambda: one.engine.work.waiting() == 0)
    assert len(two.embedded()) == 12
    one.close()
    two.close()


def test_what_a_process_of_another_machine_held_is_free_when_it_falls_silent(database: SqliteDatabase) -> None:
    work = Work(database)
    assert len(work.claim(10, PLENTY)) == 10
    database.write(lambda own: own.rows("UPDATE work SET owner = 'elsewhere:1:ab:cd'"))
    row = (
        "INSERT INTO processes(name, kind, host, unset, seen) VALUES ('elsewhere:1:ab', 'worker', 'elsewhere', '', $1)"
    )
    database.write(lambda own: own.rows(row, own.now()))
    assert work.claim(10, PLENTY) == []
    database.write(lambda own: own.rows("UPDATE processes SET seen = seen - 61"))
    assert len(work.claim(10, PLENTY)) == 10


def test_a_worker_for_some_collections_takes_no_others(database: SqliteDatabase) -> None:
    work = Work(database)
    database.write(lambda own: work.add(own, "other", {"x": 1}))
    assert [one.id for one in work.claim(10, PLENTY, collections=("other", "nothing"))] == ["x"]
    assert work.claim(10, PLENTY, collections=("nothing",)) == []
    assert len(work.claim(20, PLENTY)) == 10
