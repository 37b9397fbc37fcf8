"""Addresses become stores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from homing.errors import DimensionMismatch, InvalidArgument
from homing.records import VectorRecord
from homing.stores import open_store
from homing.stores.sqlite import SqliteStore


def test_a_relative_address_is_relative_to_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:///here.db").close()
    assert (tmp_path / "here.db").is_file()


def test_an_absolute_address_has_four_slashes(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/there.db").close()
    assert (tmp_path / "there.db").is_file()


def test_a_plain_path_is_enough(tmp_path: Path) -> None:
    store = open_store(tmp_path / "plain.db")
    assert isinstance(store, SqliteStore)
    assert store.path == tmp_path / "plain.db"
    store.close()


def test_names_with_spaces_and_chinese_work_both_ways(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/数据 库.db").close()
    open_store(f"sqlite:///{tmp_path}/%E6%95%B0%E6%8D%AE%20%E5%BA%93.db").close()
    assert [path.name for path in tmp_path.iterdir()] == ["数据 库.db"]


def test_missing_folders_are_made(tmp_path: Path) -> None:
    open_store(tmp_path / "a" / "b" / "c.db").close()
    assert (tmp_path / "a" / "b" / "c.db").is_file()


@pytest.mark.parametrize(
    "address", ["redis://x", "sqlite3:///x.db", "", "data", "sqlite://", "sqlite:///", "sqlite://x.db"]
)
def test_an_address_that_names_no_store_says_what_would(address: str) -> None:
    with pytest.raises(InvalidArgument, match="sqlite://"):
        open_store(address)


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(InvalidArgument, match="folder"):
        open_store(tmp_path / "folder.db")


def test_the_width_of_a_store_holds_for_all_of_its_collections(tmp_path: Path) -> None:
    store = open_store(tmp_path / "x.db", dimensions=4)
    store.upsert([VectorRecord("a", "c", np.ones(4, np.float32), {}, "", "m@4")])
    with pytest.raises(DimensionMismatch):
        store.upsert([VectorRecord("a", "other", np.ones(3, np.float32), {}, "", "m@3")])
    with pytest.raises(DimensionMismatch):
        store.search("nowhere", np.ones(3, np.float32))
    store.close()


def test_row_security_is_refused_where_no_server_could_keep_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="PostgreSQL"):
        open_store(tmp_path / "homing.db", row_security=True)
