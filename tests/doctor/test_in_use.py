"""The doctor looks at what is used, and each finding has the command that mends it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import apsw
import pytest
from typer.testing import CliRunner

import homing
from homing.cli.main import app as shell
from homing.config import Settings
from homing.doctor import diagnose, healthy
from homing.doctor.finding import Finding
from homing.errors_zh import has_chinese
from tests.forked import run

pytestmark = pytest.mark.slow


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with homing.open(tmp_path / "data", settings=Settings()) as app:
        folder = tmp_path / "skills" / "git"
        folder.mkdir(parents=True)
        skill = "---\nname: git\ndescription: 提交代码 commit\n---\nUse it.\n"
        (folder / "SKILL.md").write_text(skill, encoding="utf-8")
        app.skills.scan(tmp_path / "skills")
        app.documents.save("novel", "ch1", "灯塔 lighthouse")
        app.memory.remember("knowledge", "账单 invoices")
        app.documents.flush()
        app.engine.flush()
    return tmp_path / "data"


def found(data: Path) -> dict[str, Finding]:
    return {one.check: one for one in diagnose(Settings(data=data))}


def test_what_is_in_use_is_tried(data: Path) -> None:
    told = found(data)
    for check in ("disk", "file modes", "searching", "saving", "queue", "skills", "database"):
        assert told[check].status == "ok", told[check]
        assert has_chinese(told[check].detail_zh), told[check]
    assert healthy(diagnose(Settings(data=data)))
    connection = apsw.Connection(str(data / "homing.db"))
    assert not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'doctor_probe'").get


def test_a_key_that_cannot_be_had_is_found_and_its_command_mends_it(data: Path) -> None:
    base = ["--data", str(data)]
    run(["providers", "add", "工作", "--type", "openai", "--key-variable", "NOBODY_SET_THIS", *base])
    with homing.open(data, settings=Settings()) as app:
        app.models.config.create_model("工作", "text-embedding-3-small", is_default=True)
    broken = found(data)["provider 工作"]
    assert broken.status == "fail"
    assert "NOBODY_SET_THIS" in broken.detail
    _, *command = shlex.split(broken.mend)
    mended = CliRunner().invoke(shell, [*command, *base, "--json"], input="sk-test\n")
    assert json.loads(mended.stdout)["key"] == "set"
    assert found(data)["provider 工作"].status == "ok"


def test_a_key_in_the_database_itself_is_found_and_moved(data: Path) -> None:
    run(["providers", "add", "old", "--type", "openai", "--no-key", "--data", str(data)])
    assert found(data)["provider old"].status == "warn"
    connection = apsw.Connection(str(data / "homing.db"))
    connection.execute("UPDATE llm_providers SET api_key = 'sk-plain' WHERE name = 'old'")
    connection.close()
    plain = found(data)["provider old"]
    assert (plain.status, plain.mend) == ("warn", "homing providers key old")
    CliRunner().invoke(shell, ["providers", "key", "old", "--data", str(data)], input="sk-plain\n")
    assert found(data)["provider old"].status == "ok"
    assert b"sk-plain" not in (data / "homing.db").read_bytes()


def test_files_that_others_may_read_are_found_and_closed(data: Path) -> None:
    os.chmod(data, 0o755)
    (data / "homing.db").chmod(0o644)
    open_ = found(data)["file modes"]
    assert open_.status == "warn"
    os.chmod(data, 0o755)
    subprocess.run(open_.mend, shell=True, check=True)
    assert found(data)["file modes"].status == "ok"


def test_a_search_that_fails_is_never_all_well(data: Path) -> None:
    connection = apsw.Connection(str(data / "homing.db"))
    connection.execute("DROP TABLE word_pieces")
    connection.close()
    told = diagnose(Settings(data=data))
    assert not healthy(told)
    assert any(one.check == "in use" and one.status == "fail" for one in told)
