"""The interface says everything in both languages, and says nothing that it has no words for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

import homing.server
from homing.cli.main import app

SCRIPTS = Path(homing.server.__file__).parent / "page" / "scripts"
WORDS = (SCRIPTS / "words.js").read_text(encoding="utf-8")
KEYS = re.findall(r'^  "([^"]+)": \[', WORDS, re.MULTILINE)


def test_every_key_has_two_wordings_with_the_same_places() -> None:
    entries = re.findall(r'"([^"]+)": \[\s*"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)",?\s*\]', WORDS)
    assert [key for key, _, _ in entries] == KEYS
    assert len(set(KEYS)) == len(KEYS)
    for key, chinese, english in entries:
        assert set(re.findall(r"\{\w+\}", chinese)) == set(re.findall(r"\{\w+\}", english)), key
        assert not re.search(r"[\u4e00-\u9fff]", english) or key.startswith(("language", "keys.language")), key


def test_every_word_that_is_used_exists_and_every_one_that_exists_is_used() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS.rglob("*.js") if path.name != "words.js")
    used = set(re.findall(r'\bt\("([^"]+)"', code))
    assert used <= set(KEYS), used - set(KEYS)
    composed = {f"{name}." for name in re.findall(r'named\("(\w+)"', code)} | set(re.findall(r"`([\w.]+\.)\$\{", code))
    unused = [key for key in KEYS if f'"{key}"' not in code and not key.startswith(tuple(composed))]
    assert unused == []


def test_every_command_that_the_page_teaches_exists() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS.rglob("*.js"))
    taught = re.findall(r"""command\(["'](homing .*?)["']\)""", code) + re.findall(r"homing (?:\w+ )*?create", code)
    taught += re.findall(r'"(homing [^"]+)"', WORDS)
    assert len(taught) > 5
    for line in taught:
        commands: dict[str, Any] | None = typer.main.get_command(app).commands  # type: ignore[attr-defined]
        for word in line.split()[1:]:
            if commands is None:
                break
            assert word in commands, line
            commands = getattr(commands[word], "commands", None)
