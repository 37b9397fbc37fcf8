"""From SQLite over LanceDB to PostgreSQL and back: a user who outgrows an engine loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from homing.records import VectorRecord
from homing.stores.copying import copy_store
from homing.stores.lance import LanceStore
from homing.stores.postgres.store import PostgresStore
from homing.stores.sqlite import SqliteStore
from homing.stores.store import Store


def content() -> list[VectorRecord]:
    rows = np.random.default_rng(5).standard_normal((1_200, 9)).astype(np.float32)
    numbered = [
        VectorRecord(f"{n:04d}", "笔记", row, {"n": n, "x": n / 3, "tags": ["灯", n % 3]}, f"第{n}条 note", "m@9")
        for n, row in enumerate(rows)
    ]
    odd = {"深": {"k": [1, 1.0, 1e20, True, None]}, "\ud83d": "a\0b"}
    return [*numbered, VectorRecord("it's \U0001f680", "Ünï/码", None, odd, "a\0b \ud83d", "", "关键词")]


def everything(store: Store) -> list[object]:
    return [
        (replace(record, embedding=None), None if record.embedding is None else record.embedding.tobytes())
        for info in sorted(store.collections(), key=lambda info: info.name)
        for record in store.records(info.name)
    ]


@pytest.mark.slow
def test_records_go_all_the_way_round_unchanged(opened: Callable[..., PostgresStore], tmp_path: Path) -> None:
    start, end = SqliteStore(tmp_path / "start.db"), SqliteStore(tmp_path / "end.db")
    lance, postgres = LanceStore(tmp_path / "lance"), opened()
    start.upsert(content())
    route: list[Store] = [start, lance, postgres, end]
    checksums = {copy_store(source, target).checksum for source, target in pairwise(route)}
    assert len(checksums) == 1
    assert everything(end) == everything(start) == everything(postgres)
    assert postgres.search_text("笔记", "第7条")[0].id == "0007"
    for store in route:
        store.close()
