"""Tables with columns of their own, kept by the same machinery as the collections of a store."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from homing.stores.lance import Database, LanceStore
from homing.stores.lance.database import key_field, words_index
from homing.stores.lance.engine import arrow
from homing.stores.lance.upkeep import Limits, Upkeep
from homing.testing.store_contract import record


def schema() -> Any:
    pa = arrow()
    return pa.schema(
        [
            key_field(),
            pa.field("name", pa.string()),
            pa.field("tags", pa.list_(pa.string())),
            pa.field("words", pa.string()),
            pa.field("vector", pa.list_(pa.float32(), 4)),
        ]
    )


def skill(name: str, words: str = "") -> Any:
    return arrow().Table.from_pylist(
        [{"id": name, "name": name, "tags": ["a"], "words": words, "vector": [1, 0, 0, 0]}], schema=schema()
    )


def test_a_table_of_other_columns_is_written_found_and_kept_tidy(folder: Path) -> None:
    database = Database(folder)
    assert database.table("skills") is None
    with database.writing():
        table = database.create("skills", schema(), skill("git-commit", "提交 commit"))
    upkeep = Upkeep([words_index()], limits=Limits(files=4, versions=6, keep=timedelta(milliseconds=1), quiet=0.0))
    for number in range(12):
        with database.writing():
            table.upsert(skill(f"skill-{number % 3}", "打开 灯"))
        upkeep.wrote(table)
    upkeep.close()
    again = Database(folder).table("skills")
    assert again is not None
    assert again.count() == 4
    assert again.count("id = 'git-commit'") == 1
    assert [index.columns for index in again.handle.list_indices()] == [["words"]]
    assert len(list(folder.glob("skills.lance/data/*.lance"))) <= 8
    with database.writing():
        assert again.delete("id LIKE 'skill-%'") == 3
    database.close()


def test_a_store_lives_beside_such_a_table(folder: Path) -> None:
    database = Database(folder)
    with database.writing():
        database.create("skills", schema(), skill("git-commit"))
    store = LanceStore(folder)
    store.upsert([record("a", 1, collection="skills")])
    assert [info.name for info in store.collections()] == ["skills"]
    assert store.drop("skills") == 1
    table = database.table("skills")
    assert table is not None
    assert table.count() == 1
    store.close()
