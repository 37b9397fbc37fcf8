"""One browser for all pages, one filled server for those that look, an empty folder for each module that needs one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import homing
from homing.app import Homing
from homing.config import Settings
from homing.server.application import create_app
from tests.page.chromium import chromium
from tests.page.contents import fill
from tests.server.live import live

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def address(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a little of everything in it."""
    folder = tmp_path_factory.mktemp("page")
    with homing.open(folder / "data", settings=Settings()) as app:
        fill(app, folder / "skills")
        with live(create_app(app)) as address:
            yield address


@pytest.fixture(scope="module")
def app(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homing]:
    """An empty data folder."""
    with homing.open(tmp_path_factory.mktemp("page") / "data", settings=Settings()) as app:
        yield app
