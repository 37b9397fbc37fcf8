"""What holds for all servers on one database, and what each knows of the others."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import homing
from homing.config import EmbeddingSettings, Settings
from homing.doctor.in_use import working
from homing.engine.presence import Presence, present
from homing.errors import TooManyRequests
from homing.server.application import create_app
from homing.server.rate_limit import RateLimit
from homing.server.tokens import Tokens
from tests.forked import start
from tests.server.conftest import LOOPBACK
from tests.server.test_users import Person, ask_everything

pytestmark = pytest.mark.slow


def test_what_a_caller_may_ask_is_counted_over_all_servers(new_schema: Callable[[], str], tmp_path: Path) -> None:
    settings = Settings(store=new_schema(), embedding=EmbeddingSettings(provider=""))
    with homing.open(tmp_path / "1", settings=settings) as one, homing.open(tmp_path / "2", settings=settings) as two:
        first, second = (RateLimit(app.database, 0.0001, 3) for app in (one, two))
        for limit in (first, second, first):
            limit.take("token a")
        for limit in (first, second):
            with pytest.raises(TooManyRequests) as refused:
                limit.take("token a")
            assert 9_000 < (refused.value.retry_after or 0) <= 10_000
            limit.take("token b")
        # A second later there is enough again, and never more than the burst.
        fast = RateLimit(one.database, 1e6, 3)
        for _ in range(20):
            fast.take("token a")


def test_doctor_names_each_server_and_the_keys_that_it_lacks(new_schema: Callable[[], str], tmp_path: Path) -> None:
    settings = Settings(store=new_schema(), embedding=EmbeddingSettings(provider=""))
    with homing.open(tmp_path, settings=settings) as app:
        app.memory.remember("knowledge", "灯塔")
        with closing(Presence(app.database, "server", lambda: ["SOME_KEY"])) as presence:
            presence.start()
            [member] = present(app.database)
            found = {one.check: one for one in working(settings, ask_model=False)}
            lacking = found[f"server {member.name}"]
            assert lacking.status == "warn"
            assert "SOME_KEY" in lacking.detail
            assert member.host in lacking.mend
            assert found["members"].detail == "1 servers and 0 workers are running"
        assert present(app.database) == []


def test_at_every_server_users_reach_their_own_and_nothing_else(new_schema: Callable[[], str], tmp_path: Path) -> None:
    settings = Settings(store=new_schema(), row_security=True, embedding=EmbeddingSettings(provider=""))
    with homing.open(tmp_path / "1", settings=settings) as one, homing.open(tmp_path / "2", settings=settings) as two:
        tokens = {name: Tokens(one.database).create(name, "write").secret for name in ("lin", "owner/../lin")}
        with (
            TestClient(create_app(one), base_url=LOOPBACK) as here,
            TestClient(create_app(two), base_url=LOOPBACK) as there,
        ):
            for name, secret in tokens.items():
                person = Person(here, secret)
                person("POST", "/memory/remember", {"text": f"宝藏 of {name}.", "id": "treasure"})
                person("PUT", "/documents/island/map", {"text": f"宝藏 of {name}."})
                lamp = {"id": f"宝藏 of {name}.", "name": "宝藏灯", "type": "light"}
                person("PUT", "/devices", {"devices": [lamp]})
            for name, secret in tokens.items():
                said = ask_everything(Person(there, secret))
                assert said.count(f"宝藏 of {name}.") > 5
                assert not any(f"宝藏 of {other}." in said for other in tokens if other != name)
    # Nobody has a folder: whatever they have is in the database.
    assert not (tmp_path / "1" / "users").exists()
    assert not (tmp_path / "2" / "homing.db").exists()


def test_a_folder_is_embedded_by_its_own_server(tmp_path: Path) -> None:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = start(["serve", "--no-embed", "--json", "--data", str(tmp_path)], cwd=tmp_path, env=os.environ, **streams)
    told, errors = process.communicate("", 120)
    assert process.wait() != 0
    assert "--no-embed" in told + errors
