"""Whatever table is lost: where a search, a save or a look-up fails, the doctor never says that all is well."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import homing
from homing.app import Homing
from homing.config import EmbeddingSettings, Settings
from homing.doctor import diagnose, healthy
from homing.doctor.finding import Finding
from homing.errors import HomingError

WORDS = Settings(embedding=EmbeddingSettings(provider=""))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with something of everything, found by words."""
    folder = tmp_path_factory.mktemp("whole")
    skill = folder / "skills" / "git"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: git\ndescription: 提交代码 commit\n---\nUse it.\n", encoding="utf-8")
    with homing.open(folder / "data", settings=WORDS) as app:
        app.skills.scan(folder / "skills")
        app.documents.save("novel", "ch1", "灯塔 lighthouse")
        app.documents.upload("# 海\n\nThe sea.".encode(), "sea.md")
        app.memory.remember("knowledge", "账单 invoices")
        app.devices.replace({"devices": [{"id": "a", "name": "灯", "type": "light"}]})
        app.models.config.create_provider("work", "openai", api_key="${NOT_SET}")
        assert fails(app) == []
    with closing(apsw.Connection(str(folder / "data" / "homing.db"))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return folder / "data"


def fails(app: Homing) -> list[str]:
    """What a user cannot do."""
    tries: dict[str, Callable[[], Any]] = {
        "search": lambda: app.documents.search("novel", "灯塔"),
        "recall": lambda: app.memory.recall("账单"),
        "skill": lambda: app.skills.find_relevant_skills("提交代码", threshold=0.0),
        "save": lambda: app.documents.save("novel", "ch2", "海鸟 seabird"),
        "remember": lambda: app.memory.remember("knowledge", "海鸟 seabird"),
        "devices": lambda: app.devices.ask("开灯"),
    }
    return [name for name, work in tries.items() if not works(work)]


def works(work: Callable[[], Any]) -> bool:
    try:
        return bool(work())
    except HomingError:
        return False


def told(data: Path) -> list[Finding]:
    return diagnose(WORDS.model_copy(update={"data": data}))


def changed(data: Path, statement: str, *values: Any) -> None:
    with closing(apsw.Connection(str(data / "homing.db"))) as connection:
        connection.execute(statement, values)


@pytest.mark.slow
def test_no_table_is_lost_without_the_doctor_knowing_what_fails(whole: Path, tmp_path: Path) -> None:
    with closing(apsw.Connection(str(whole / "homing.db"))) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    tried = [name for name in names if not name.startswith("sqlite_")]
    assert len(tried) > 20
    for name in tried:
        data = Path(shutil.copytree(whole, tmp_path / name))
        changed(data, f'DROP TABLE "{name}"')
        found = told(data)
        if healthy(found):
            with homing.open(data, settings=WORDS) as app:
                assert fails(app) == [], name
        assert all(one.mend for one in found if one.status == "fail"), name
