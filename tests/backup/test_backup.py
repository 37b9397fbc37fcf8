"""Backups: consistent while others write, brought back whole or not at all, and never over something else."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import homing
from homing.app import Homing
from homing.backup import back_up, restore
from homing.cli.main import app as shell
from homing.config import Settings
from homing.errors import HomingError, InvalidArgument, NotFound, StoreCorrupt
from homing.server.users import Users
from homing.testing.fake import FakeEmbedder
from tests.forked import Process, start_python

WRITER = """
import sys, homing
from homing.config import Settings
from homing.testing.fake import FakeEmbedder
with homing.open(sys.argv[1], settings=Settings(), embedder=FakeEmbedder()) as app:
    for number in range(100_000):
        app.documents.save("novel", f"ch{number:05d}", f"灯塔 lighthouse {number}")
        print(number, flush=True)
"""
HALTED = """
import sys
from pathlib import Path
from typing import Any
from homing.backup import {function}
from homing.config import Settings
def halt(done, total):
    print(done, flush=True)
    sys.stdin.read()
{function}(Settings(data=Path(sys.argv[1])), Path(sys.argv[2]), progress=halt)
"""


def opened(data: Path) -> Homing:
    return homing.open(data, settings=Settings(), embedder=FakeEmbedder())


def settings(data: Path) -> Settings:
    return Settings(data=data)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with an owner, a user, a saved evaluation, a copied skill and a key."""
    data = tmp_path / "home"
    with opened(data) as app:
        app.documents.save("novel", "ch1", "灯塔守望者 the keeper of the lighthouse\n\n第二段 about whales")
        app.memory.remember("knowledge", "Invoices go out on the first working day.")
        users = Users(app)
        with users.lease("小明") as other:
            other.memory.remember("knowledge", "发票在月初寄出")
        users.close()
    others = {"evaluations/one.json": "{}", "skills/lamp/SKILL.md": "# Lamp", "keys.json": '{"k": "s3"}'}
    for name, text in others.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(text, encoding="utf-8")
    (data / "evaluations" / "link.json").symlink_to(data / "keys.json")
    return data


def below(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def test_everything_that_people_keep_comes_back_and_secrets_stay_where_they_are(home: Path, tmp_path: Path) -> None:
    made = back_up(settings(home), tmp_path / "backup")
    assert (made.left_out, made.problems, made.commands) == (["keys.json"], [], [])
    again = restore(settings(tmp_path / "again"), tmp_path / "backup")
    assert (again.files, again.bytes, again.problems) == (made.files, made.bytes, [])
    with opened(tmp_path / "again") as app:
        assert app.documents.text("novel", "ch1").startswith("灯塔守望者")
        assert app.memory.recall("when do invoices go out?").hits[0].text.startswith("Invoices")
        users = Users(app)
        assert users.known() == ["owner", "小明"]
        with users.lease("小明") as other:
            assert [hit.text for hit in other.memory.recall("发票").hits] == ["发票在月初寄出"]
        users.close()
    assert (tmp_path / "again" / "skills" / "lamp" / "SKILL.md").read_text(encoding="utf-8") == "# Lamp"
    assert (tmp_path / "again" / "evaluations" / "one.json").exists()
    assert not any(b's3"' in content for content in below(tmp_path / "backup").values())
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []
    assert all(one.stat().st_mode & 0o077 == 0 for one in (tmp_path / "backup").rglob("*"))


def test_a_backup_can_be_opened_as_it_is(home: Path, tmp_path: Path) -> None:
    back_up(settings(home), tmp_path / "backup")
    with opened(tmp_path / "backup") as app:
        assert app.documents.search("novel", "whales").hits[0].text == "第二段 about whales"


def test_a_backup_is_one_moment_of_a_home_that_another_process_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homing.database.sqlite.snapshot.PAGES", 20)
    data = tmp_path / "home"
    with start_python(["-c", WRITER, str(data)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(20)][-1]
        seen: list[int] = []

        def write_on(done: int, total: int) -> None:
            # The writer goes on between two pieces of the copy.
            seen.extend(int(writer.stdout.readline()) for _ in range(3) if writer.stdout)

        made = back_up(settings(data), tmp_path / "backup", progress=write_on)
        writer.kill()
    assert made.problems == []
    restore(settings(tmp_path / "again"), tmp_path / "backup")
    with opened(tmp_path / "again") as app:
        documents = sorted(one.id for one in app.documents.documents("novel"))
        assert documents == [f"ch{number:05d}" for number in range(len(documents))]
        assert acknowledged < len(documents)
        assert app.store.check() == []
        app.documents.flush()
        assert app.documents.search("novel", f"lighthouse {acknowledged}").hits
    assert seen[-1] > len(documents)


def halted(function: str, data: Path, folder: Path) -> Process:
    code = HALTED.format(function=function)
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = start_python(["-c", code, str(data), str(folder)], **streams)
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def test_a_backup_that_is_killed_leaves_none_and_the_next_one_clears_up(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "backup"
    with halted("back_up", home, target) as process:
        with pytest.raises(HomingError, match="another process"):
            back_up(settings(home), target)
        process.kill()
    assert not target.exists()
    with pytest.raises(NotFound, match="holds no backup"):
        restore(settings(tmp_path / "again"), target)
    assert back_up(settings(home), target).problems == []
    assert sorted(one.name for one in tmp_path.iterdir()) == ["backup", "home"]


def test_a_restore_that_is_killed_leaves_nothing_and_can_be_repeated(home: Path, tmp_path: Path) -> None:
    back_up(settings(home), tmp_path / "backup")
    data = tmp_path / "again"
    with halted("restore", data, tmp_path / "backup") as process:
        process.kill()
    assert not data.exists()
    assert restore(settings(data), tmp_path / "backup").problems == []
    assert sorted(one.name for one in tmp_path.iterdir()) == ["again", "backup", "home"]


def test_nothing_is_overwritten(home: Path, tmp_path: Path) -> None:
    back_up(settings(home), tmp_path / "backup")
    before = below(home), below(tmp_path / "backup")
    with pytest.raises(InvalidArgument, match="not empty"):
        restore(settings(home), tmp_path / "backup")
    with pytest.raises(InvalidArgument, match="not empty"):
        back_up(settings(home), tmp_path / "backup")
    with pytest.raises(InvalidArgument, match="inside the data folder"):
        back_up(settings(home), home / "backups" / "one")
    assert (below(home), below(tmp_path / "backup")) == before


def spoiled(folder: Path) -> Iterator[tuple[str, str]]:
    """Ways in which a backup is not what it was, and what is said."""
    listed = json.loads((folder / "backup.json").read_text(encoding="utf-8"))
    database, user = folder / "homing.db", folder / next(one for one in listed["files"] if one.endswith("user.txt"))
    content = database.read_bytes()
    database.write_bytes(content[:-100] + bytes([content[-100] ^ 1]) + content[-99:])
    yield "a byte changed", "not the file that was backed up"
    database.write_bytes(content)
    user.unlink()
    yield "a file is gone", "not there"
    user.write_text("小明", encoding="utf-8")
    for name in ("../outside", "/outside"):
        changed = listed | {"files": {name: next(iter(listed["files"].values()))}}
        (folder / "backup.json").write_text(json.dumps(changed), encoding="utf-8")
        yield name, "outside of the backup"
    (folder / "backup.json").write_text("[", encoding="utf-8")
    yield "no JSON", "cannot be read"
    (folder / "backup.json").write_text(json.dumps(listed | {"format": 99}), encoding="utf-8")
    yield "newer", "newer Homing"


def test_a_backup_that_is_not_what_it_was_is_refused_whole(home: Path, tmp_path: Path) -> None:
    back_up(settings(home), tmp_path / "backup")
    for how, said in spoiled(tmp_path / "backup"):
        with pytest.raises(StoreCorrupt, match=said):
            restore(settings(tmp_path / "again"), tmp_path / "backup")
        assert sorted(one.name for one in tmp_path.iterdir()) == ["backup", "home"], how


def test_damage_of_the_home_is_told_by_both_and_mended_afterwards(home: Path, tmp_path: Path) -> None:
    with opened(home) as app:
        app.database.write(lambda transaction: transaction.rows("DELETE FROM word_segments"))
    run = CliRunner().invoke(shell, ["backup", str(tmp_path / "backup"), "--data", str(home)])
    assert run.exit_code == 1
    assert "damaged: homing.db: " in run.output
    run = CliRunner().invoke(shell, ["restore", str(tmp_path / "backup"), "--data", str(tmp_path / "again"), "--json"])
    assert run.exit_code == 1
    assert json.loads(run.output)["problems"]
    run = CliRunner().invoke(shell, ["repair", "--data", str(tmp_path / "again")])
    assert run.exit_code == 0, run.output


@pytest.mark.parametrize("store", ["lance:///nowhere", "sqlite:////elsewhere/x.db"])
def test_a_store_that_is_elsewhere_is_not_restored_to(home: Path, tmp_path: Path, store: str) -> None:
    back_up(settings(home), tmp_path / "backup")
    with pytest.raises(InvalidArgument, match="leave the store"):
        restore(Settings(data=tmp_path / "again", store=store), tmp_path / "backup")
    assert not (tmp_path / "again").exists()


def test_lance_is_copied_by_another_command(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="homing store copy"):
        back_up(Settings(data=tmp_path / "home", store="lance:///nowhere"), tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_home_has_no_backup(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nothing in"):
        back_up(settings(tmp_path / "home"), tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []
