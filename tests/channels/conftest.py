"""What the tests of the channels may ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from homing.testing.loopback import LoopbackApi


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi(key="sk-over-there") as api:
        yield api
