"""`homing knowledge` in a shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from homing.cli.main import app
from tests.files.made_files import make_pdf

HANDBOOK = "员工每年有十五天带薪年假。"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "手册.pdf").write_bytes(make_pdf([HANDBOOK]))
    (tmp_path / "refunds.txt").write_text("Refunds are paid within seven days.", encoding="utf-8")
    (tmp_path / "slides.pptx").write_bytes(b"...")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["knowledge", *arguments])


def told(*arguments: str) -> Any:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.slow
def test_files_are_uploaded_searched_listed_and_deleted() -> None:
    done = run("upload", "手册.pdf", "refunds.txt")
    assert done.exit_code == 0, done.output
    assert "手册.pdf uploaded, 1 passage" in done.stdout
    assert "手册.pdf" in run("list").stdout
    assert "手册.pdf (1)" in run("search", "年假有几天").stdout
    assert told("search", "when are refunds paid")["hits"][0]["metadata"]["fileName"] == "refunds.txt"
    assert run("search", "年假", "--prompt").stdout.startswith("### 资料 1 [相似度: ")
    assert run("delete", "手册.pdf").exit_code == 0
    assert [file["file_name"] for file in told("list")["files"]] == ["refunds.txt"]


def test_one_file_that_cannot_be_read_does_not_stop_the_others() -> None:
    done = run("upload", "slides.pptx", "missing.txt", "refunds.txt", "--json")
    assert done.exit_code == 3
    answer = json.loads(done.stdout)
    assert [one["file"]["file_name"] for one in answer["uploaded"]] == ["refunds.txt"]
    assert [one["code"] for one in answer["failed"]] == ["UNSUPPORTED_FILE", "NOT_FOUND"]
    assert "export it as .pdf" in answer["failed"][0]["message"]


def test_users_have_their_own(files: Path) -> None:
    run("upload", "手册.pdf", "--user", "李雷")
    assert told("list")["files"] == []
    assert [file["file_name"] for file in told("list", "--user", "李雷")["files"]] == ["手册.pdf"]
    assert told("search", "年假", "--user", "alice")["hits"] == []
    assert "replaced" not in run("upload", "手册.pdf").stdout


def test_the_same_file_again_and_a_new_version_are_told(files: Path) -> None:
    run("upload", "refunds.txt")
    assert "is already there" in run("upload", "refunds.txt").stdout
    (files / "refunds.txt").write_text("Refunds take a month.", encoding="utf-8")
    assert "refunds.txt replaced" in run("upload", "refunds.txt").stdout


def test_files_without_vectors_are_embedded_by_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMING_EMBEDDING__PROVIDER", "")
    done = run("upload", "refunds.txt")
    assert "homing knowledge embed" in done.stdout
    assert told("embed") == {"embedded": 0, "waiting": 1}
    monkeypatch.delenv("HOMING_EMBEDDING__PROVIDER")
    assert told("embed") == {"embedded": 1, "waiting": 0}
    assert told("search", "money back")["hits"][0]["score"] is not None
