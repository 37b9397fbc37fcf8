"""A memory with everything in one file, on the fake embedder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory.parts import Parts


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Parts]:
    parts = Parts(tmp_path / "homing.db")
    yield parts
    parts.close()
