"""Opening a store on PostgreSQL: schemas made and refused, and errors that say what to do but no password."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from psycopg import sql

from homing.config import EmbeddingSettings, Settings
from homing.database.postgres.database import PostgresDatabase
from homing.doctor import diagnose
from homing.errors import InvalidArgument, StoreCorrupt, StoreError, StoreTooNew, StoreUnavailable
from homing.records import VectorRecord
from homing.stores import open_store
from homing.stores.postgres.store import PostgresStore
from tests.forked import start_python

Opened = Callable[..., PostgresStore]
SECRET = "s3cret-词"


def test_the_address_alone_opens_it(database: Any) -> None:
    for url in (database.url, database.url.replace("postgresql://", "postgres://")):
        with psycopg.connect(database.admin_url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS homing CASCADE")
        store = open_store(url, dimensions=3)
        try:
            assert isinstance(store, PostgresStore)
            store.upsert([VectorRecord("a", "c", None, {}, "你好 hello")])
            assert [match.id for match in store.search_text("c", "你好")] == ["a"]
        finally:
            store.close()


def test_an_address_says_the_schema_the_replica_and_the_time_limit(database: Any, schema: str) -> None:
    replica = quote(database.url, safe="")
    store = open_store(f"{database.url}?schema={quote(schema)}&read_url={replica}&statement_timeout=5&sslmode=disable")
    try:
        assert isinstance(store, PostgresStore)
        assert store.schema == schema
        store.upsert([VectorRecord("a", "c", None, {}, "你好")])
        assert [match.id for match in store.search_text("c", "你好")] == ["a"]
    finally:
        store.close()


@pytest.mark.parametrize("told", ["statement_timeout=soon", "statement_timeout=-1", "schema=", "read_url=mysql://x"])
def test_an_address_with_a_part_that_cannot_be_says_which(database: Any, told: str) -> None:
    with pytest.raises(InvalidArgument, match=r"statement_timeout|schema|postgresql://"):
        open_store(f"{database.url}?{told}")


@pytest.mark.slow
def test_processes_that_make_the_schema_at_once_all_get_it(database: Any, schema: str) -> None:
    code = (
        "import sys; from homing.stores.postgres.store import PostgresStore; from homing.records import VectorRecord\n"
        "store = PostgresStore(sys.argv[1], schema=sys.argv[2])\n"
        "store.upsert([VectorRecord(sys.argv[3], 'c', [1, 0], {}, '词', 'm@2')]); store.close()"
    )
    racing = [
        start_python(["-c", code, database.url, schema, str(number)], stderr=subprocess.PIPE) for number in range(4)
    ]
    for process in racing:
        _, told = process.communicate(timeout=60)
        assert process.returncode == 0, told.decode()
    store = PostgresStore(database.url, schema=schema)
    try:
        assert [record.id for record in store.records("c")] == ["0", "1", "2", "3"]
        assert store.check() == []
    finally:
        store.close()


def test_threads_that_open_it_at_once_all_get_it(opened: Opened) -> None:
    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(lambda _: opened(), range(4)))
    stores[0].upsert([VectorRecord("a", "c", None, {}, "词")])
    assert all(store.collections()[0].records == 1 for store in stores)


def test_a_newer_schema_is_refused(opened: Opened, admin: psycopg.Connection) -> None:
    opened().close()
    admin.execute("INSERT INTO migrations(component, number) VALUES ('store', 99)")
    with pytest.raises(StoreTooNew, match="upgrade Homing"):
        opened()


def test_a_schema_with_somebody_elses_tables_is_left_alone(
    opened: Opened, admin: psycopg.Connection, schema: str
) -> None:
    admin.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    admin.execute("CREATE TABLE records(mine text); INSERT INTO records VALUES ('precious')")
    admin.execute(sql.SQL("GRANT ALL ON SCHEMA {} TO PUBLIC").format(sql.Identifier(schema)))
    with pytest.raises(StoreCorrupt, match="schema of its own"):
        opened()
    assert admin.execute("SELECT mine FROM records").fetchall() == [("precious",)]


def test_a_store_over_a_database_leaves_it_open(database: Any, schema: str) -> None:
    rows = PostgresDatabase(database.url, schema=schema)
    store = PostgresStore(rows)
    assert store.database is rows
    store.upsert([VectorRecord("a", "c", None, {}, "你好")])
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.collections()
    again, mine = PostgresStore(rows), PostgresStore(rows.for_user("李雷"))
    assert [match.id for match in again.search_text("c", "你好")] == ["a"]
    assert mine.user_id == "李雷"
    assert mine.collections() == []
    rows.close()
    with pytest.raises(StoreError, match="closed"):
        again.collections()


@pytest.mark.parametrize("schema", ["Weird \" '; DROP SCHEMA public; --", "模式", "select"])
def test_any_name_is_a_schema(opened: Opened, schema: str) -> None:
    store = opened()
    store.upsert([VectorRecord("a", "c", None, {}, "hello")])
    assert store.collections()[0].records == 1


@pytest.mark.parametrize("schema_name", ["", "a\0b", "x" * 64, 7])
def test_what_cannot_be_a_schema_is_refused(database: Any, schema_name: Any) -> None:
    with pytest.raises(InvalidArgument, match="schema"):
        PostgresStore(database.url, schema=schema_name)


@pytest.mark.parametrize("timeout", [0, -1, True, "5", 100_000])
def test_an_impossible_timeout_is_refused(database: Any, timeout: Any) -> None:
    with pytest.raises(InvalidArgument, match="statement_timeout"):
        PostgresStore(database.url, statement_timeout=timeout)


def told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(getattr(error, "details", ""))


def with_password(url: str, password: str = SECRET, **changed: str) -> str:
    parts = urlsplit(url)
    port = changed.get("port", parts.port)
    database = changed.get("database", parts.path)
    return f"postgresql://{parts.username}:{password}@{parts.hostname}:{port}{database}"


def test_a_server_that_is_not_there_is_known_at_once() -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1/") as refused:
        PostgresStore(f"postgresql://me:{SECRET}@127.0.0.1:1/db")
    assert SECRET not in told(refused.value)


def test_a_wrong_password_is_no_reason_to_try_again(database: Any) -> None:
    with pytest.raises(StoreError, match="check user and password") as refused:
        PostgresStore(with_password(database.url))
    assert not isinstance(refused.value, StoreUnavailable)
    assert SECRET not in told(refused.value)


def test_a_missing_database_is_named(database: Any) -> None:
    password = urlsplit(database.url).password or ""
    with pytest.raises(StoreError, match="nowhere"):
        PostgresStore(with_password(database.url, password, database="/nowhere"))


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@[half/db",
        f"postgresql://me:{SECRET}@host/db?unknown_option=1",
        f"postgresql://me:{SECRET}%@host/db",
        f"mysql://me:{SECRET}@host/db",
        f"host=localhost password={SECRET}",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidArgument, match="postgresql://") as refused:
        PostgresStore(url)
    assert SECRET not in told(refused.value)


def test_neither_the_store_nor_its_address_shows_the_password(store: PostgresStore, database: Any) -> None:
    password = urlsplit(database.url).password
    if password:
        assert password not in repr(store) + str(store.address) + repr(store.address) + repr(store.for_user(1))


def test_a_role_that_may_not_install_pgvector_is_told_who_may(database: Any, admin: psycopg.Connection) -> None:
    if database.url == database.admin_url:
        pytest.skip("the given role may do anything")
    admin.execute("DROP DATABASE IF EXISTS homing_bare")
    owner = urlsplit(database.url).username or "postgres"
    admin.execute(sql.SQL("CREATE DATABASE homing_bare OWNER {}").format(sql.Identifier(owner)))
    try:
        password = urlsplit(database.url).password or ""
        with pytest.raises(StoreError, match="CREATE EXTENSION vector"):
            PostgresStore(with_password(database.url, password, database="/homing_bare"))
    finally:
        admin.execute("DROP DATABASE homing_bare WITH (FORCE)")


def test_a_missing_driver_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from homing.stores import open_store; from homing.errors import MissingExtra\n"
        "try: open_store('postgresql://localhost/x')\n"
        "except MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'homing[postgres]'" in done.stdout


def test_the_doctor_looks_at_the_server(database: Any) -> None:
    open_store(database.url).close()
    found = {one.check: one for one in diagnose(Settings(store=database.url, embedding=EmbeddingSettings(provider="")))}
    assert found["server"].status == "ok"
    assert "pgvector" in found["server"].detail
    assert found["saving"].status == "ok"
