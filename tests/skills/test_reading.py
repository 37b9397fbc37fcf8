"""A skill by its id, folder or name, with the text of its SKILL.md."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from homing.errors import InvalidArgument, NotFound
from homing.skills import ToolRetrievalService
from tests.skills.folders import front, write_skill


def test_a_skill_is_read_by_its_name_its_id_and_its_folder(service: ToolRetrievalService, root: Path) -> None:
    folder = write_skill(root, "提交", front("git-commit", "写提交信息", "先看 `git diff`，再提交。"))
    service.scan(root)
    for wanted in ("git-commit", str(folder), os.path.relpath(folder)):
        found = service.get_skill(wanted)
        assert (found.name, found.body.strip()) == ("git-commit", "先看 `git diff`，再提交。")


def test_the_body_is_that_of_the_file_as_it_is_now(service: ToolRetrievalService, root: Path) -> None:
    write_skill(root, "a", front("a", "first", "old words"))
    service.scan(root)
    write_skill(root, "a", front("a", "first", "new words"))
    assert service.get_skill("a").body.strip() == "new words"


def test_what_is_indexed_stands_in_for_a_file_that_is_gone(service: ToolRetrievalService, root: Path) -> None:
    folder = write_skill(root, "a", front("a", "first", "保留的正文"))
    service.scan(root)
    (folder / "SKILL.md").unlink()
    assert "保留的正文" in service.get_skill("a").body


def test_a_skill_without_a_folder_is_not_looked_for_on_disk(
    service: ToolRetrievalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.index_skill({"name": "plain", "description": "no folder", "body": "indexed body"})
    write_skill(tmp_path, "plain", front("plain", "another one", "a file that has nothing to do with it"))
    monkeypatch.chdir(tmp_path)
    assert service.get_skill("plain").body == "indexed body"


def test_a_link_that_leads_out_of_the_folder_is_not_read(
    service: ToolRetrievalService, root: Path, tmp_path: Path
) -> None:
    folder = write_skill(root, "a", front("a", "first", "the words that were scanned"))
    service.scan(root)
    secret = tmp_path / "secret.md"
    secret.write_text("not for anybody", encoding="utf-8")
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").symlink_to(secret)
    assert "not for anybody" not in service.get_skill("a").body


def test_an_unknown_skill_and_a_shared_name_say_what_to_do(service: ToolRetrievalService, root: Path) -> None:
    write_skill(root, "one/x", front("same", "one"))
    write_skill(root, "two/x", front("same", "two"))
    service.scan(root)
    with pytest.raises(NotFound, match="no skill 'other'"):
        service.get_skill("other")
    with pytest.raises(InvalidArgument, match="2 skills are named 'same'"):
        service.get_skill("same")
