from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from homing.app import Homing
from homing.mcp import mcp_server
from tests.mcp.furnished import furnish


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homing]:
    with furnish(tmp_path_factory.mktemp("mcp")) as app:
        yield app


@pytest.fixture
def server(app: Homing) -> Any:
    return mcp_server(app)
