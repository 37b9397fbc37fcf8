"""Each remote provider in turn, against a server that speaks its format and knows one key."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from homing.embedders.remote import RemoteProvider
from homing.testing.loopback import LoopbackApi
from tests.embedders.remotes import KEY, REMOTES, Remote


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi(key=KEY) as api:
        yield api


@pytest.fixture(params=REMOTES)
def remote(request: pytest.FixtureRequest) -> Remote:
    return REMOTES[request.param]


@pytest.fixture
def provider(remote: Remote, api: LoopbackApi) -> Iterator[RemoteProvider]:
    provider = remote.at(api.url)
    yield provider
    provider.close()
