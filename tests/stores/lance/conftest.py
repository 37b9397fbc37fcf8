"""What the tests of the LanceDB store share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from homing.stores.lance import LanceStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "lance"


@pytest.fixture
def store(folder: Path) -> Iterator[LanceStore]:
    opened = LanceStore(folder)
    yield opened
    opened.close()
