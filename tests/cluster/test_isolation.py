"""What one user of a server has, no other reaches: by any part of the app, and by any SQL behind the fence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import homing
from homing.app import Homing
from homing.config import EmbeddingSettings, Settings
from homing.engine import Engine
from homing.engine.work import Work
from homing.records import VectorRecord
from homing.server.job import JobView
from homing.server.job_log import JobLog, Order
from homing.server.rate_limit import COMPONENT as RATES
from homing.server.rate_limit import STEPS as RATE_STEPS
from homing.server.tokens import Tokens
from homing.server.users import Users
from homing.testing.fake import FakeEmbedder
from tests.conftest import Database
from tests.effort import times

pytestmark = pytest.mark.slow

NAMES = ("lin", "Lin", "林", "' OR user_id <> '", "%")
SECRET = "宝藏埋在灯塔下面"
_numbers = count()


@dataclass
class Shared:
    """A fenced database with users on it, and its address for whoever logs in like the application."""

    app: Homing
    users: Users
    url: str
    schema: str
    folder: Path
    log: JobLog = field(init=False)

    def __post_init__(self) -> None:
        self.log = JobLog(self.app.database)
        Tokens(self.app.database).create("lin", "write")
        self.app.models.config.ensure_default_embedding_model()
        self.app.database.migrate(RATES, RATE_STEPS)

    def act(self, user: str, kind: str, secret: str) -> None:
        """Let a user keep a secret in some way."""
        with self.users.lease(user) as own:
            name = f"n{next(_numbers)}"
            if kind == "document":
                own.documents.save(secret, secret, f"{secret}\n\n{SECRET}")
                own.documents.update_config(top_k=3)
            elif kind == "memory":
                own.memory.remember("knowledge", secret, session_key=secret, tags=[secret], metadata={"m": secret})
            elif kind == "upload":
                own.knowledge(user).upload(secret.encode(), f"{name}.txt")
            elif kind == "home":
                own.devices.replace({"devices": [{"id": secret, "name": secret, "type": "light"}]})
            elif kind == "folder":
                folder = self.folder / name
                folder.mkdir()
                (folder / f"{secret}.md").write_text(secret, encoding="utf-8")
                own.folder(folder).refresh()
            elif kind == "job":
                view = JobView(name, "reindex", secret, user)
                order = Order("reindex_documents", json.dumps({"project": secret}), "write", secret.encode())
                self.log.begin(view, shared=False, order=order)
            elif kind == "vector":
                engine = Engine(own.store, FakeEmbedder(8), user=user, background=False)
                engine.collection("notes").write([VectorRecord(name, "notes", None, {}, secret)])
                assert engine.flush()

    def tables(self, fenced: bool) -> list[str]:
        """The tables with rows of users, or the others."""
        with self.session("") as session:
            rows = session.execute(
                "SELECT c.relname FROM pg_class c "
                "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relnamespace = current_schema()::regnamespace "
                "AND EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'user_id') = %s "
                "ORDER BY 1",
                (fenced,),
            ).fetchall()
        return [name for (name,) in rows]

    def session(self, user: str) -> psycopg.Connection:
        """A session of the application's role that says it is a user, and may run any SQL."""
        session = psycopg.connect(self.url, autocommit=True)
        session.execute("SELECT set_config('search_path', %s, false)", (f"{self.schema}, public",))
        session.execute("SELECT set_config('homing.user_id', %s, false)", (user,))
        return session


@pytest.fixture(scope="module")
def shared(
    postgres: Database, new_schema: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shared]:
    if postgres.url == postgres.admin_url:
        pytest.skip("a superuser sees over the fence")
    address, folder = new_schema(), tmp_path_factory.mktemp("isolation")
    off = Settings(store=address, row_security=True, embedding=EmbeddingSettings(provider=""))
    with homing.open(folder / "data", settings=off) as app, closing(Users(app)) as users:
        yield Shared(app, users, postgres.url, address.rpartition("=")[2], folder)


OUTSIDE = {
    *("work", "wanted", "work_users", "processes", "jobs", "tokens", "rates", "spaces", "migrations", "tickets"),
    *("llm_providers", "llm_models", "llm_revision", "model_switch"),
}
"""The tables without rows of users: keys of work, and what is the server's own."""
KINDS = ("document", "memory", "upload", "home", "folder", "job", "vector")
actions = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(KINDS)), min_size=4, max_size=10)


@settings(max_examples=times(3, in_full=100), deadline=None, suppress_health_check=list(HealthCheck))
@given(actions)
def test_no_row_of_one_user_is_reached_as_another(shared: Shared, done: list[tuple[str, str]]) -> None:
    mark = f"m{next(_numbers)}m"
    for user, kind in done:
        shared.act(user, kind, f"{mark}{NAMES.index(user)}z")
    for table in shared.tables(fenced=False):
        # Outside of the fence are keys of work, and what the server itself has.
        with shared.session("") as session:
            rows = session.execute(f"SELECT t::text FROM {table} t").fetchall()
            for user in NAMES:
                assert not any(f"{mark}{NAMES.index(user)}z" in row for (row,) in rows), table
    for user in NAMES:
        with shared.session(user) as session:
            for table in shared.tables(fenced=True):
                seen = session.execute(f"SELECT user_id, t::text FROM {table} t").fetchall()
                assert {whose for whose, _ in seen} <= {user}, table
                others = [f"{mark}{NAMES.index(name)}z" for name in NAMES if name != user]
                assert not any(other in row for _, row in seen for other in others), table
                assert (
                    session.execute(f"UPDATE {table} SET user_id = %s WHERE user_id <> %s", (user, user)).rowcount == 0
                )
                assert session.execute(f"DELETE FROM {table} WHERE user_id <> %s", (user,)).rowcount == 0
                if seen:
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        session.execute(f"UPDATE {table} SET user_id = 'somebody'")
        with shared.users.lease(user) as own:
            own_mark = f"{mark}{NAMES.index(user)}z"
            texts = [
                own.documents.text(p.id, d.id) for p in own.documents.projects() for d in own.documents.documents(p.id)
            ]
            texts += [entry.text for entry in own.memory.list("knowledge")]
            texts += [device.id for device in own.devices.home.devices]
            texts += [hit.text for hit in own.documents.search(None, f"{mark} {SECRET}", mode="keyword", top_k=100)]
            texts += [hit.text for hit in own.memory.recall(mark)]
            assert all(mark not in text or own_mark in text for text in texts)
            wanted = {kind for name, kind in done if name == user} & {"document", "memory", "upload", "home", "folder"}
            assert bool(wanted) == any(own_mark in text for text in texts)


def test_every_table_with_rows_of_users_is_fenced(shared: Shared) -> None:
    for kind in KINDS:
        shared.act("lin", kind, f"one{next(_numbers)}")
    with shared.session("") as session:
        rows = session.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace "
            "AND relrowsecurity AND relforcerowsecurity ORDER BY 1"
        ).fetchall()
    assert [name for (name,) in rows] == shared.tables(fenced=True)
    assert Work(shared.app.database).users()
    # A table that is new is either behind the fence or named here, and in both cases one that these tests look into.
    there = {re.sub(r"_\d+$", "_1", name) for name in (*shared.tables(fenced=True), *shared.tables(fenced=False))}
    assert there == {*_tables_in_source(), "vectors_1", "migrations", "tickets"}
    assert set(shared.tables(fenced=False)) == OUTSIDE


def _tables_in_source() -> set[str]:
    """Every table that Homing makes in PostgreSQL under a name of its own."""
    root = Path(homing.__file__).parent
    elsewhere = (root / "testing", root / "stores" / "sqlite", root / "database" / "sqlite")
    files = [file for file in root.rglob("*.py") if not any(folder in file.parents for folder in elsewhere)]
    texts = [file.read_text("utf-8") for file in files]
    return {name for text in texts for name in re.findall(r"CREATE TABLE (\w+)", text) if name != "IF"}
