"""A served data folder with a little of everything in it, and clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import homing
from homing.app import Homing
from homing.config import Settings
from homing.server.application import create_app
from tests.databases import database, open_database
from tests.server.contents import HOME, MEMORIES, NOVEL, SKILLS

__all__ = ["database", "open_database"]

LOOPBACK = "http://127.0.0.1"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homing]:
    folder = tmp_path_factory.mktemp("served")
    for name, description in SKILLS.items():
        (folder / "skills" / name).mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: {description}\n---\nUse it well.\n"
        (folder / "skills" / name / "SKILL.md").write_text(text, encoding="utf-8")
    (folder / "home.json").write_text(json.dumps(HOME, ensure_ascii=False), encoding="utf-8")
    with homing.open(folder / "data", settings=Settings()) as app:
        app.skills.scan(folder / "skills")
        for collection, text in MEMORIES:
            app.memory.remember(collection, text)
        for document, text in NOVEL.items():
            app.documents.save("novel", document, text)
        app.devices.load(folder / "home.json")
        app.documents.flush()
        app.engine.flush()
        yield app


@pytest.fixture(scope="module")
def client(app: Homing) -> Iterator[TestClient]:
    with TestClient(create_app(app), base_url=LOOPBACK) as client:
        yield client


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Homing]:
    """An empty data folder of one test."""
    with homing.open(tmp_path / "data", settings=Settings()) as app:
        yield app
