"""A memory with everything in one file, on the fake embedder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rag.linked_memory import Memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    memory = Memory(tmp_path / "homing.db")
    yield memory
    memory.close()


@pytest.fixture
def unlinked(tmp_path: Path) -> Iterator[Memory]:
    memory = Memory(tmp_path / "homing.db", link=False)
    yield memory
    memory.close()
