"""A knowledge base that moves to another engine: every user finds their files again, and nobody else's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import homing
from homing.cli.store import app as shell
from homing.config import EmbeddingSettings, Settings
from homing.knowledge import CHUNKS
from homing.stores import open_store

pytestmark = pytest.mark.slow

USERS = {
    "owner": "员工每年有十五天带薪年假。",
    "李雷:1": "Refunds are paid within seven days.",
    "bob": "鲍勃的报销单。",
}


def copy(source: str, target: str) -> dict[str, object]:
    done = CliRunner().invoke(shell, ["copy", source, target, "--json"])
    assert done.exit_code == 0, done.output
    told: dict[str, object] = json.loads(done.output)
    return told


def found(data: Path, store: str) -> dict[str, list[str]]:
    settings = Settings(store=store, embedding=EmbeddingSettings(provider=""))
    with homing.open(data, settings=settings) as app:
        return {
            user: [hit.text for name in ("年假", "refunds", "报销") for hit in app.knowledge(user).search(name)]
            for user in USERS
        }


def test_from_sqlite_to_postgres_and_back(new_database: Callable[[], str], tmp_path: Path) -> None:
    data, postgres = tmp_path / "data", new_database()
    with homing.open(data, settings=Settings()) as app:
        for user, text in USERS.items():
            app.knowledge(user).upload(text.encode(), "文件.txt")
        app.memory.remember("knowledge", "The lighthouse is on an island.")
        app.engine.flush()
    there = copy(f"sqlite:///{data}/homing.db", postgres)
    expected = {user: [text] for user, text in USERS.items()}
    assert found(tmp_path / "elsewhere", postgres) == expected
    store = open_store(postgres)
    # Nothing of a user lies where everybody's things are.
    assert [info.name for info in store.collections() if info.name.startswith(CHUNKS)] == []
    store.close()
    back = copy(postgres, f"sqlite:///{tmp_path}/back.db")
    assert back == there
    assert found(tmp_path / "third", f"sqlite:///{tmp_path}/back.db") == expected


def test_between_two_servers(new_database: Callable[[], str], tmp_path: Path) -> None:
    first, second = new_database(), new_database()
    with homing.open(tmp_path / "data", settings=Settings(store=first)) as app:
        for user, text in USERS.items():
            app.knowledge(user).upload(text.encode(), "文件.txt")
    copy(first, second)
    assert found(tmp_path / "elsewhere", second) == {user: [text] for user, text in USERS.items()}
