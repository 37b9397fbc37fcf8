"""Bulk loading into PostgreSQL: rows first, the vector index afterwards."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import homing.stores.postgres.indexing as indexing
from homing.bulk import ProcessWorkers, Source, load
from homing.engine import Engine
from homing.stores.postgres.store import PostgresStore
from homing.testing.fake import FakeEmbedder
from tests.conftest import Database


def test_the_index_is_built_when_the_rows_are_there(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "WORTHWHILE", 20)
    monkeypatch.setattr(indexing, "PAUSE", 0.0)
    schema = f"bulk_{secrets.token_hex(4)}"
    file = tmp_path / "rows.jsonl"
    lines = ({"id": f"{n:03d}", "text": f"第{n}条 灯塔 lamp {n}"} for n in range(120))
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    store = PostgresStore(database.url, schema=schema)
    engine = Engine(store, FakeEmbedder(), background=False)
    seen = []

    def is_indexed(done: int, total: int) -> None:
        seen.append(store.database.read(lambda one: one.rows("SELECT coalesce(bool_or(indexed), false) FROM spaces")))

    pool = ProcessWorkers(FakeEmbedder, 1)
    done = load(engine, Source(str(file)), "rows", pool, model=FakeEmbedder().id, batch=10, progress=is_indexed)
    pool.close()
    assert done.embedded == 120
    assert {row for [row] in seen} == {(False,)}
    assert store.database.read(lambda one: one.rows("SELECT indexed FROM spaces")) == [(True,)]
    assert store.check() == []
    engine.close()
    store.close()
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))
