"""A server that speaks the wire formats of chat models, and every adapter on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.chat.adapters import KEY, MAKERS
from tests.chat.loopback import ChatServer


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(key=KEY) as running:
        yield running


@pytest.fixture(params=list(MAKERS))
def model(request: pytest.FixtureRequest, server: ChatServer) -> Iterator[Any]:
    with closing(MAKERS[request.param](server.url)) as made:
        yield made
