"""What every part of the tests may ask for: a real PostgreSQL server, started when the first test needs it.

It is started from packaged programs, once a session (and once a worker, where tests run side by side), or it is the one
that HOMING_TEST_POSTGRES names.
"""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import psycopg
import pytest
from psycopg import sql

from homing.database.postgres.server import LocalServer
from homing.embedders.local import LocalProvider
from tests.effort import SOAK, times

# Every commit waits for the disk; in memory it waits for nothing. `make soak` stays on the disk.
MEMORY, ROOM = Path("/dev/shm"), 4 << 30
if not SOAK and "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# No test reads or writes what the person who runs it has: without a folder of its own, a command takes ./data.
os.environ["HOMING_DATA"] = "data"
os.environ["XDG_DATA_HOME"] = str(Path(tempfile.gettempdir(), "homing-tests-have-no-home"))

# Nothing here must survive a power cut. A killed server loses nothing all the same.
FAST = {"fsync": "off", "full_page_writes": "off"}
KEPT = LocalProvider()

HEAVY = {"browser", "folder_of_servers", "shell"}
ENGINES = ("postgres", "lance")
PARTS = ("stores/lance", "langchain", "langgraph", "haystack", "llamaindex", "seeds/test_seed_000_skills.py")
FOLDERS = {Path(__file__).parent / one for one in PARTS}

# No property fails because the machine was busy.
hypothesis.settings.register_profile("homing", max_examples=times(50, in_full=1_000), deadline=None)
hypothesis.settings.load_profile("homing")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever needs a browser, a shell, a PostgreSQL server, LanceDB or a framework is no part of `make check`."""
    for item in items:
        given = getattr(item, "callspec", None)
        told = [one for one in given.params.values() if isinstance(one, str)] if given else []
        engines = [one for one in told if one.endswith(ENGINES)]
        if engines or HEAVY & set(getattr(item, "fixturenames", ())) or FOLDERS & {item.path, *item.path.parents}:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay to the end: the collector need not look at them each time."""
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown() -> None:
    """Once a test has loaded the bundled model it stays in memory for those that follow."""
    if "onnxruntime" in sys.modules:
        KEPT.load()


@dataclass(frozen=True)
class Database:
    """Where the tests work: `url` as an ordinary role, `admin_url` as one that may do anything."""

    url: str
    admin_url: str


@pytest.fixture(scope="session")
def folder_of_servers() -> Iterator[Path]:
    # Not pytest's folder: as root the server runs as somebody who may not enter it.
    folder = Path(tempfile.mkdtemp(prefix="homing-test-postgres-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres(folder_of_servers: Path) -> Iterator[Database]:
    given = os.environ.get("HOMING_TEST_POSTGRES")
    if given:
        yield Database(given, given)
        return
    server = LocalServer(folder_of_servers / "shared", settings=FAST)
    server.start()
    yield Database(server.url, server.admin_url)
    server.remove()


@pytest.fixture(scope="session")
def database(postgres: Database) -> Database:
    return postgres


@pytest.fixture(scope="session")
def new_schema(postgres: Database) -> Iterator[Callable[[], str]]:
    """Makes addresses of empty schemas: what one test does is nothing to another."""
    made: list[str] = []

    def make() -> str:
        made.append(f"homing_{secrets.token_hex(6)}")
        return f"{postgres.url}?schema={made[-1]}"

    yield make
    with psycopg.connect(postgres.admin_url, autocommit=True) as connection:
        for schema in made:
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A browser that is open leaves its event loop running; tests of other parts run loops of their own."""
    running = asyncio._get_running_loop()
    if running is None or "page" in item.path.parts:
        return (yield)
    asyncio._set_running_loop(None)
    try:
        return (yield)
    finally:
        asyncio._set_running_loop(None if running.is_closed() else running)
