"""Files that are broken, full, or cannot be written."""

from __future__ import annotations

import os
import random
import resource
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import numpy as np
import pytest

from homing.errors import StoreCorrupt, StoreError, StoreReadOnly, StoreTooOld
from homing.records import VectorRecord
from homing.stores.sqlite import SqliteStore
from tests.another_user import NOBODY, not_shut_out


def records(count: int, start: int = 0) -> list[VectorRecord]:
    made = np.random.default_rng(start)
    return [
        VectorRecord(
            f"{number:05d}", "c", made.standard_normal(16).astype(np.float32), {"n": number}, f"记录 {number}", "m"
        )
        for number in range(start, start + count)
    ]


def filled(path: Path, count: int = 500) -> Path:
    store = SqliteStore(path)
    store.upsert(records(count))
    store.close()
    return path


@contextmanager
def unprivileged() -> Iterator[None]:
    """Permissions do not stop root, so root steps down for a while."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that anybody may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)


def test_a_file_of_random_bytes_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    content = random.Random(1).randbytes(50_000)
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match="not a database"):
        SqliteStore(path)
    assert path.read_bytes() == content


def test_an_empty_file_is_damage_since_a_new_one_is_never_seen_empty(tmp_path: Path) -> None:
    (tmp_path / "x.db").touch()
    with pytest.raises(StoreCorrupt, match="is empty"):
        SqliteStore(tmp_path / "x.db")
    assert (tmp_path / "x.db").read_bytes() == b""


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_of_an_earlier_edition_is_refused_in_a_sentence(tmp_path: Path, version: int) -> None:
    SqliteStore(tmp_path / "x.db").close()
    plain = apsw.Connection(str(tmp_path / "x.db"))
    plain.pragma("user_version", version)
    plain.close()
    with pytest.raises(StoreTooOld, match="earlier edition"):
        SqliteStore(tmp_path / "x.db")


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, share: float) -> None:
    path = filled(tmp_path / "x.db")
    size = path.stat().st_size
    os.truncate(path, int(size * share))
    with pytest.raises(StoreCorrupt):
        SqliteStore(path)


def test_a_file_with_a_header_and_rubbish_behind_it_is_corrupt(tmp_path: Path) -> None:
    path = filled(tmp_path / "x.db")
    content = bytearray(path.read_bytes())
    content[4096:] = random.Random(2).randbytes(len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt):
        SqliteStore(path).search("c", np.ones(16, np.float32))


def test_a_damaged_page_is_reported_by_check(tmp_path: Path) -> None:
    path = filled(tmp_path / "x.db", 2000)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096 * 40] = random.Random(3).randbytes(4096 * 40)
    path.write_bytes(content)
    try:
        store = SqliteStore(path)
        problems = store.check()
        store.close()
    except StoreCorrupt:
        return
    assert any("damaged" in problem for problem in problems)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DELETE FROM records WHERE id = '00003'", "belong to no record"),
        ("DELETE FROM word_segments", "does not hold the words of record '00003'"),
        ("DELETE FROM word_pieces", "the keyword index of collection 'c' is damaged"),
        (
            "UPDATE word_pieces SET postings = zeroblob(length(postings))",
            "the keyword index of collection 'c' is damaged",
        ),
        ("DELETE FROM embeddings WHERE record % 7 = 1", "vectors of 'm' belong to no record"),
        ("DELETE FROM vectors_1 WHERE record % 7 = 1", "missing from the vector table"),
        ("DELETE FROM segments", "search codes"),
        ("UPDATE matrices SET live = 3", "counts 3 vectors"),
        ("UPDATE collections SET records = 3", "counts 3 records and has 500"),
    ],
)
def test_check_sees_parts_that_do_not_agree(tmp_path: Path, damage: str, said: str) -> None:
    store = SqliteStore(filled(tmp_path / "x.db"))
    assert store.check() == []
    with store.database.writing() as connection:
        connection.execute(damage)
    assert any(said in problem for problem in store.check())
    store.close()


def test_a_folder_that_cannot_be_written_gets_no_store(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    with unprivileged(), pytest.raises(StoreReadOnly, match="writable"):
        SqliteStore(open_folder / "x.db")
    with unprivileged(), pytest.raises(StoreReadOnly):
        SqliteStore(open_folder / "below" / "x.db")


@not_shut_out
@pytest.mark.parametrize("folder_mode", [0o777, 0o555])
def test_a_file_that_cannot_be_written_can_be_searched(open_folder: Path, folder_mode: int) -> None:
    path = filled(open_folder / "x.db")
    path.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    open_folder.chmod(folder_mode)
    with unprivileged():
        store = SqliteStore(path)
        assert len(store.search("c", np.ones(16, np.float32))) == 10
        assert [match.id for match in store.search_text("c", "记录 7", limit=1)] == ["00007"]
        with pytest.raises(StoreReadOnly):
            store.upsert(records(1))
        with pytest.raises(StoreReadOnly):
            store.delete("c", ["00001"])
        store.close()


def test_a_file_that_cannot_be_read_says_so(open_folder: Path) -> None:
    path = filled(open_folder / "x.db")
    path.chmod(0)
    with unprivileged(), pytest.raises(StoreError, match="cannot be"):
        SqliteStore(path)


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    store = SqliteStore(filled(tmp_path / "x.db"))
    with store.database.writing() as connection:
        pages = connection.pragma("page_count")
        connection.pragma("max_page_count", pages + 20)
    with pytest.raises(StoreError, match="room"):
        store.upsert(records(3000, start=250))
    assert store.check() == []
    assert store.collections()[0].records == 500
    assert store.search("c", np.ones(16, np.float32), limit=1000)[0].metadata["n"] < 500
    with store.database.writing() as connection:
        connection.pragma("max_page_count", 2**30)
    store.upsert(records(500, start=250))
    assert store.collections()[0].records == 750
    store.close()


def test_a_write_that_the_system_refuses_changes_nothing(tmp_path: Path) -> None:
    store = SqliteStore(filled(tmp_path / "x.db"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StoreError):
            store.upsert(records(2000, start=250))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert store.check() == []
    assert store.collections()[0].records == 500
    store.upsert(records(500, start=250))
    assert store.collections()[0].records == 750
    store.close()


def test_a_collection_that_was_searched_and_then_emptied_is_no_damage(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.db")
    store.write([VectorRecord("a", collection, None, {}, "年假") for collection in ("c", "d")])
    assert store.search_words("c", "年假", 5).found
    store.delete("c", ["a"])
    assert store.check() == []
    store.close()
