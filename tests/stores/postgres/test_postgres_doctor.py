"""What the doctor says about a database server, with faults planted one by one."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

import homing
from homing.config import EmbeddingSettings, Settings
from homing.doctor import diagnose
from homing.doctor.finding import Finding
from homing.doctor.server import served
from homing.errors_zh import has_chinese
from tests.conftest import Database


@pytest.fixture
def settings(database: Database, schema: str, tmp_path: Path) -> Settings:
    found = Settings(data=tmp_path, store=f"{database.url}?schema={schema}", embedding=EmbeddingSettings(provider=""))
    with homing.open(tmp_path, settings=found) as app:
        app.documents.save("novel", "ch1", "灯塔 lighthouse")
        app.memory.remember("knowledge", "账单 invoices")
    return found


def wrong(settings: Settings) -> list[Finding]:
    return [one for one in served(settings) if one.status != "ok"]


def run_psql(connection: psycopg.Connection, finding: Finding) -> None:
    """Does what a finding says."""
    psql, c, rest = finding.mend.split(" ", 2)
    assert (psql, c) == ("psql", "-c")
    connection.execute(rest.split("'")[1].encode())


def test_a_server_that_is_well_is_called_so(settings: Settings) -> None:
    [finding] = served(settings)
    assert (finding.check, finding.status) == ("server", "ok")
    assert has_chinese(finding.detail_zh)
    assert [one for one in diagnose(settings) if one.status == "fail"] == []


def test_an_index_that_is_not_valid_is_found_and_made_anew(settings: Settings, admin: psycopg.Connection) -> None:
    admin.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'documents_pkey'::regclass")
    [finding] = wrong(settings)
    assert (finding.check, finding.status) == ("index", "fail")
    assert "documents_pkey" in finding.detail
    run_psql(admin, finding)
    assert wrong(settings) == []


@pytest.mark.parametrize("off", [-60.0, 60.0])
def test_a_clock_that_differs_is_found(settings: Settings, monkeypatch: pytest.MonkeyPatch, off: float) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + off)
    [finding] = wrong(settings)
    assert (finding.check, finding.status) == ("clock", "warn")
    assert "NTP" in finding.mend


def test_a_replica_that_is_away_or_is_none_is_found(settings: Settings, database: Database) -> None:
    for address, status in (("postgresql://x:pass-word@127.0.0.1:9/homing", "warn"), (database.url, "fail")):
        with_replica = settings.model_copy(update={"store": f"{settings.store}&read_url={quote(address, safe='')}"})
        [finding] = wrong(with_replica)
        assert (finding.check, finding.status) == ("replica", status)
        assert "read_url" in finding.mend
        assert "pass-word" not in repr(finding)


def test_a_table_that_is_gone_is_never_all_well(settings: Settings, admin: psycopg.Connection) -> None:
    admin.execute("ALTER TABLE memories RENAME TO elsewhere")
    [finding] = [one for one in diagnose(settings) if one.status == "fail"]
    assert finding.mend.startswith("restore a backup of postgresql://")
    admin.execute("ALTER TABLE elsewhere RENAME TO memories")
    assert [one for one in diagnose(settings) if one.status == "fail"] == []
