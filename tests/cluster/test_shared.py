"""What holds for all servers on one database, and what each knows of the others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import homing
from homing.config import EmbeddingSettings, Settings
from homing.doctor.in_use import working
from homing.engine.presence import Presence, present
from homing.errors import TooManyRequests
from homing.server.shared_rate import SharedRateLimit

pytestmark = pytest.mark.slow


def test_what_a_caller_may_ask_is_counted_over_all_servers(new_schema: Callable[[], str], tmp_path: Path) -> None:
    settings = Settings(store=new_schema(), embedding=EmbeddingSettings(provider=""))
    with homing.open(tmp_path / "1", settings=settings) as one, homing.open(tmp_path / "2", settings=settings) as two:
        first, second = (SharedRateLimit(app.database, 0.0001, 3) for app in (one, two))
        for limit in (first, second, first):
            limit.take("token a")
        for limit in (first, second):
            with pytest.raises(TooManyRequests) as refused:
                limit.take("token a")
            assert 9_000 < (refused.value.retry_after or 0) <= 10_000
            limit.take("token b")
        # A second later there is enough again, and never more than the burst.
        fast = SharedRateLimit(one.database, 1e6, 3)
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
