"""A home in which faults are planted, and that is mended by doing what the doctor says, word for word."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import pytest

import homing
from homing.app import Homing
from homing.config import Settings, load
from homing.doctor import Finding, diagnose
from homing.testing.loopback import LoopbackApi
from tests.forked import command

SETTING = re.compile(r"[\w.]+ = ")


@dataclass(frozen=True)
class Asked:
    """How the doctor is asked, and what a person gives to what it says: keys that are typed, words in capitals.

    `by_hand` is what only a person can do; the planting does it when it goes on.
    """

    live: bool = False
    typed: str = ""
    words: Mapping[str, object] = field(default_factory=dict)
    by_hand: bool = False


BY_HAND = Asked(by_hand=True)


class Home:
    """A data folder, its homing.toml and the environment of who uses it."""

    def __init__(self, folder: Path, data: Path, api: LoopbackApi, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.data, self.api, self.patch = folder, data, api, patch
        self.told: dict[str, Any] = {}
        self._bin = folder / "bin"
        self._bin.mkdir()
        (self._bin / "homing").write_text(f'#!/bin/sh\nexec {shlex.join(command())} "$@"\n', encoding="utf-8")
        (self._bin / "homing").chmod(0o755)
        patch.setenv("HOMING_DATA", str(data))
        patch.setenv("HOMING_CONFIG", str(folder / "homing.toml"))
        self.tell("")

    def tell(self, lines: str) -> None:
        """Write settings, as the lines of homing.toml; a section that is given whole replaces the old one."""
        for key, value in tomllib.loads(lines).items():
            dotted = re.search(rf"^{key}\.", lines, re.MULTILINE)
            self.told[key] = _merged(self.told.get(key, {}), value) if dotted else value
        rows = "".join(f"{'.'.join(keys)} = {json.dumps(value)}\n" for keys, value in _flat(self.told))
        (self.folder / "homing.toml").write_text(rows, encoding="utf-8")

    def use_api(self, more: str = "") -> None:
        """Embed with the model behind the API."""
        account = f'providers.a = {{ type = "openai", api_key = "k", base_url = "{self.api.url}/v1" }}'
        model = 'embedding.provider_id = "a"\nembedding.model = "text-embedding-3-small"\nembedding.dimensions = 64'
        self.tell(f"{account}\n{model}\n{more}")

    def without_model(self) -> None:
        """Find by words only."""
        self.tell('embedding = { provider = "" }')

    @property
    def settings(self) -> Settings:
        return load().settings

    def open(self, **options: Any) -> Homing:
        return homing.open(self.data, settings=self.settings, **options)

    def sql(self, statement: str) -> None:
        with closing(apsw.Connection(str(self.data / "homing.db"))) as connection:
            connection.execute(statement).fetchall()

    def diagnose(self, *, live: bool = False) -> list[Finding]:
        return diagnose(self.settings, live=live)

    def mend(self, finding: Finding, asked: Asked, env: Mapping[str, str] | None = None) -> None:
        """Do what a finding says: write the line into homing.toml, set the variable, or run the command."""
        remedy = finding.mend
        for word, meaning in asked.words.items():
            assert word in remedy
            remedy = remedy.replace(word, str(meaning))
        if SETTING.match(remedy):
            self.tell(remedy)
        elif remedy.startswith("export "):
            name, _, value = remedy.removeprefix("export ").partition("=")
            self.patch.setenv(name, value)
        else:
            programs = f"{self._bin}:{(env or {}).get('PATH', '')}:{os.environ['PATH']}"
            given = {**os.environ, **(env or {}), "PATH": programs}
            done = subprocess.run(
                ["bash", "-c", remedy], input=asked.typed, text=True, capture_output=True, env=given, check=False
            )
            assert done.returncode == 0, f"{remedy}: {done.stdout} {done.stderr}"


Planting = Callable[[Any], Generator[Asked]]
"""Plants a fault in a home of its own kind, says how the doctor is asked, and does what is left to a person."""


def planted_in(cases: dict[str, Planting], fault: str) -> Callable[[Planting], Planting]:
    """Keeps a planting as the case of a fault."""

    def keep(planting: Planting) -> Planting:
        cases[fault] = planting
        return planting

    return keep


def assert_found_and_mended(planting: Planting, fault: str, home: Home, env: Mapping[str, str] | None = None) -> None:
    """The fault that is planted is found; after doing what the finding says it is gone."""
    planted = planting(home)
    asked = next(planted)
    found = [one for one in home.diagnose(live=asked.live) if one.fault == fault]
    assert found, [one for one in home.diagnose(live=asked.live) if one.fault]
    assert found[0].status in ("warn", "fail")
    assert "{" not in found[0].mend.replace("${", "").replace("= {", "")
    if not asked.by_hand:
        home.mend(found[0], asked, env)
    for _ in planted:
        pass
    left = [one for one in home.diagnose(live=asked.live) if one.fault == fault]
    assert left == []


def furnished(folder: Path) -> Path:
    """A data folder with something of everything, found by words, and files for its skills."""
    for name in ("git", "excel"):
        skill = folder / name / name
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(f"---\nname: {name}\ndescription: 提交代码 {name}\n---\nUse it.\n", "utf-8")
    settings = Settings.model_validate({"embedding": {"provider": ""}})
    with homing.open(folder / "data", settings=settings) as app:
        app.skills.scan(folder / "git")
        app.documents.save("novel", "ch1", "灯塔 lighthouse")
        app.memory.remember("knowledge", "账单 invoices")
    with closing(apsw.Connection(str(folder / "data" / "homing.db"))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return folder


def copied(whole: Path, folder: Path) -> Path:
    return Path(shutil.copytree(whole / "data", folder / "data"))


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: _merged(old[key], new[key]) for key in old.keys() & new.keys() if isinstance(new[key], dict)}
    return {**old, **new, **both}


def _flat(tree: Mapping[str, Any], above: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    found: list[tuple[tuple[str, ...], Any]] = []
    for key, value in tree.items():
        found += _flat(value, (*above, key)) if isinstance(value, dict) else [((*above, key), value)]
    return found
