"""A home of one's own for each fault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from homing.testing.loopback import LoopbackApi
from tests.doctor.planting import Home, copied, furnished


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return furnished(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def home(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with LoopbackApi() as api:
        made = Home(tmp_path, copied(whole, tmp_path), api, monkeypatch)
        made.without_model()
        yield made
