"""What the doctor says about a database server: every fault is planted, and mended by what its finding says."""

from __future__ import annotations

import secrets
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import psycopg
import pytest
from psycopg import sql

from homing.backup import back_up
from homing.database.postgres.server import _installation
from homing.engine.presence import Presence
from homing.errors_zh import has_chinese
from homing.testing.loopback import LoopbackApi
from tests.conftest import Database
from tests.doctor.planting import BY_HAND, Asked, Home, Planting, assert_found_and_mended, planted_in

CASES: dict[str, Planting] = {}
case = partial(planted_in, CASES)


class HomeOnAServer(Home):
    """A home whose rows are all on a server; `admin` may do anything there."""

    database: Database
    schema: str
    admin: psycopg.Connection

    def administration(self) -> dict[str, str]:
        """What lets an administrator in."""
        passwords = self.folder / "pgpass"
        passwords.write_text(f"*:*:*:postgres:{unquote(urlsplit(self.database.admin_url).password or '')}\n")
        passwords.chmod(0o600)
        return {"PGPASSFILE": str(passwords), "PATH": str(_installation() / "bin")}


@pytest.fixture
def home(
    database: Database, schema: str, admin: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HomeOnAServer]:
    with LoopbackApi() as api:
        made = HomeOnAServer(tmp_path, tmp_path / "data", api, monkeypatch)
        made.database, made.schema, made.admin = database, schema, admin
        made.without_model()
        made.tell(f'store = "{database.url}?schema={schema}"')
        with made.open() as app:
            app.documents.save("novel", "ch1", "灯塔 lighthouse")
            app.memory.remember("knowledge", "账单 invoices")
        yield made


@case("pgvector missing")
def pgvector_was_never_installed(home: HomeOnAServer) -> Generator[Asked]:
    bare = f"homing_{secrets.token_hex(4)}"
    owner = urlsplit(home.database.url).username or "postgres"
    home.admin.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(bare), sql.Identifier(owner)))
    address = urlsplit(home.database.url)._replace(path=f"/{bare}").geturl()
    home.tell(f'store = "{address}"')
    yield Asked()
    assert [one for one in home.diagnose() if one.status == "fail"] == []
    home.tell(f'store = "{home.database.url}?schema={home.schema}"')
    home.admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(bare)))


def pgvector_is_dropped(home: HomeOnAServer) -> Generator[Asked]:
    """In a database of its own: it takes all vectors with it."""
    planted = pgvector_was_never_installed(home)
    yield next(planted)
    home.use_api()
    with home.open() as app:
        app.memory.remember("knowledge", "灯塔 lighthouse")
        app.engine.flush()
    address = urlsplit(home.database.admin_url)._replace(path=urlsplit(home.settings.store).path).geturl()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP EXTENSION vector CASCADE")
    for fault in ("pgvector missing", "index damaged"):
        found = [one for one in home.diagnose() if one.status == "fail"]
        assert {one.fault for one in found} == {fault}
        home.mend(found[0], Asked(), home.administration())
    with home.open() as app:
        assert [one.records - one.embedded for one in app.store.collections()] == [0]
        assert app.memory.recall("灯塔", mode="semantic")[0].text == "灯塔 lighthouse"
    for _ in planted:
        pass


@case("index invalid")
def an_index_is_not_valid(home: HomeOnAServer) -> Generator[Asked]:
    home.admin.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'documents_pkey'::regclass")
    yield Asked()


@case("clocks differ")
def a_clock_is_late(home: HomeOnAServer) -> Generator[Asked]:
    real = time.time
    with home.patch.context() as patch:
        patch.setattr(time, "time", lambda: real() - 60)
        yield BY_HAND


def with_replica(home: HomeOnAServer, address: str) -> None:
    home.tell(f'store = "{home.database.url}?schema={home.schema}&read_url={quote(address, safe="")}"')


@case("replica down")
def the_replica_is_away(home: HomeOnAServer) -> Generator[Asked]:
    with_replica(home, "postgresql://x:pass-word@127.0.0.1:9/homing")
    assert "pass-word" not in repr(home.diagnose())
    yield BY_HAND
    home.tell(f'store = "{home.database.url}?schema={home.schema}"')


@case("replica is primary")
def the_replica_is_the_primary(home: HomeOnAServer) -> Generator[Asked]:
    with_replica(home, home.database.url)
    yield BY_HAND
    home.tell(f'store = "{home.database.url}?schema={home.schema}"')


@case("member without key")
def a_server_lacks_a_key(home: HomeOnAServer) -> Generator[Asked]:
    with home.open() as app, closing(Presence(app.database, "server", lambda: ["SOME_KEY"])) as presence:
        presence.start()
        yield BY_HAND


@case("schema damaged")
def a_table_is_lost(home: HomeOnAServer) -> Generator[Asked]:
    back_up(home.settings, home.folder / "backup")
    home.admin.execute("DROP TABLE memories CASCADE")
    yield Asked(words={"BACKUP": home.folder / "backup"})
    with home.open() as app:
        assert [one.text for one in app.memory.list("knowledge")] == ["账单 invoices"]
    home.admin.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(f"{home.schema}_damaged")))


@pytest.mark.parametrize("fault", CASES)
def test_a_fault_is_found_and_mended_by_what_its_finding_says(fault: str, home: HomeOnAServer) -> None:
    assert_found_and_mended(CASES[fault], fault, home, home.administration())


def test_a_home_from_which_pgvector_was_dropped_is_mended_in_two_steps(home: HomeOnAServer) -> None:
    assert_found_and_mended(pgvector_is_dropped, "pgvector missing", home, home.administration())


def test_a_server_that_is_well_is_called_so(home: HomeOnAServer) -> None:
    found = {one.check: one for one in home.diagnose()}
    assert has_chinese(found["server"].detail_zh)
    assert "pgvector" in found["server"].detail
    assert found["saving"].status == "ok"
    assert [one for one in found.values() if one.fault] == []


def test_an_index_that_is_being_built_is_no_fault(home: HomeOnAServer) -> None:
    own = f"{home.database.url}?options=-c%20search_path%3D{home.schema}"
    with psycopg.connect(own) as writer, psycopg.connect(own, autocommit=True) as builder, ThreadPoolExecutor() as pool:
        # A build waits for whoever may be writing.
        writer.execute("LOCK TABLE memories IN ROW EXCLUSIVE MODE")
        built = pool.submit(builder.execute, "CREATE INDEX CONCURRENTLY slow ON memories(id)")
        while home.admin.execute("SELECT 1 FROM pg_index WHERE indexrelid = to_regclass('slow')").fetchone() is None:
            assert not built.done()
        found = home.diagnose()
        writer.rollback()
        built.result()
    assert [one for one in found if one.fault] == []
