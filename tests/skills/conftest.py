from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from homing.skills import ToolRetrievalService
from homing.testing.fake import FakeEmbedder


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
def service(tmp_path: Path, embedder: FakeEmbedder) -> Iterator[ToolRetrievalService]:
    with ToolRetrievalService(tmp_path / "data", embedder=embedder) as service:
        yield service


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "skills").mkdir()
    return tmp_path / "skills"
