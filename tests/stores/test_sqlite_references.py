"""Searching a store a thousand times a minute for days must not use the interpreter up."""

from __future__ import annotations

import sys
from pathlib import Path

from homing.records import VectorRecord
from homing.stores.sqlite.store import SqliteStore
from homing.vectors import as_vector


def test_a_search_gives_back_every_reference_it_took(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "homing.db")
    store.upsert(VectorRecord(str(at), "c", as_vector([1.0, at]), {}, f"文字 {at}", "m@2") for at in range(20))
    store.search("c", as_vector([1.0, 3.0]))
    before = sys.getrefcount(None)
    for _ in range(200):
        store.search("c", as_vector([1.0, 3.0]))
    assert sys.getrefcount(None) > before - 100
    store.close()
