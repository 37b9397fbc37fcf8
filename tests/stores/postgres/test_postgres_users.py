"""Users are kept apart: by our SQL always, by the server too where the fence is up."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from homing.errors import InvalidArgument, StoreError
from homing.records import VectorRecord
from homing.stores.postgres.store import PostgresStore
from homing.stores.store import SearchOptions
from tests.effort import times

Opened = Callable[..., PostgresStore]
QUERY = np.array([1, 0], np.float32)


def note(name: str, text: str, collection: str = "notes", **metadata: Any) -> VectorRecord:
    return VectorRecord(name, collection, QUERY, metadata, text, "m@2")


@pytest.fixture(params=[False, True], ids=["sql", "fence"])
def fenced(request: pytest.FixtureRequest, opened: Opened) -> PostgresStore:
    return opened(row_security=request.param)


def test_users_do_not_see_each_other(fenced: PostgresStore) -> None:
    li, han, nobody = fenced.for_user("李雷"), fenced.for_user("韩梅梅"), fenced
    for who, text in ((li, "李雷的秘密 secret"), (han, "韩梅梅的秘密 secret"), (nobody, "公开的秘密 secret")):
        who.upsert([note("same-id", text, user_id="韩梅梅")])
    for who, text in ((li, "李雷的秘密 secret"), (han, "韩梅梅的秘密 secret"), (nobody, "公开的秘密 secret")):
        assert [match.text for match in who.search("notes", QUERY)] == [text]
        assert [match.text for match in who.search_text("notes", "秘密 secret")] == [text]
        assert [
            match.text for match in who.search_text("notes", "秘密", options=SearchOptions({"user_id": "韩梅梅"}))
        ] == [text]
        assert [found.text for found in who.get("notes", ["same-id"])] == [text]
        assert [found.text for found in who.records("notes")] == [text]
        assert [(info.name, info.records) for info in who.collections()] == [("notes", 1)]
        assert who.check() == []
    assert li.drop("notes") == 1
    assert li.search_text("notes", "秘密") == []
    assert len(han.search("notes", QUERY)) == 1
    assert han.delete("notes", ["same-id"]) == 1
    assert len(nobody.search("notes", QUERY)) == 1


def test_a_user_is_the_same_by_number_and_by_text(fenced: PostgresStore) -> None:
    fenced.for_user(7).upsert([note("a", "词")])
    assert [match.id for match in fenced.for_user("7").search_text("notes", "词")] == ["a"]
    assert fenced.for_user("07").collections() == []


@pytest.mark.parametrize("user", ["", "  ", "a\0b", "\ud800", True, None, 1.5, b"x", "长" * 100])
def test_what_cannot_be_a_user_is_refused(store: PostgresStore, user: Any) -> None:
    with pytest.raises(InvalidArgument, match="user"):
        store.for_user(user)


def test_the_store_of_a_user_does_not_lead_to_another_user(store: PostgresStore) -> None:
    with pytest.raises(InvalidArgument, match="李雷"):
        store.for_user("李雷").for_user("韩梅梅")


def test_closing_the_store_of_a_user_leaves_the_others_open(store: PostgresStore) -> None:
    one, two = store.for_user(1), store.for_user(2)
    one.upsert([note("a", "词")])
    one.close()
    with pytest.raises(StoreError, match="closed"):
        one.collections()
    two.upsert([note("a", "词")])
    store.close()
    with pytest.raises(StoreError, match="closed"):
        two.collections()


def test_behind_the_fence_sql_of_others_sees_and_writes_nothing(database: Any, opened: Opened, schema: str) -> None:
    if database.url == database.admin_url:
        pytest.skip("a superuser sees over the fence")
    store = opened(row_security=True)
    store.for_user("李雷").upsert([note("a", "李雷的秘密")])
    tables = ("collections", "tallies", "held", "records", "word_segments", "word_pieces", "vectors_1")
    with psycopg.connect(database.url, autocommit=True) as session:
        session.execute("SELECT set_config('search_path', %s, false)", (f"{schema}, public",))

        def visible() -> set[int]:
            return {session.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] for table in tables}

        assert visible() == {0}
        session.execute("SET homing.user_id = '韩梅梅'")
        assert visible() == {0}
        assert session.execute("UPDATE records SET text = 'stolen'").rowcount == 0
        assert session.execute("DELETE FROM vectors_1").rowcount == 0
        for forged in (
            "INSERT INTO collections(user_id, name) VALUES ('李雷', 'forged')",
            "INSERT INTO word_pieces VALUES (99, 1, '李雷', '')",
            "INSERT INTO records VALUES (99, 1, '李雷', 'x', '{}', '{}', '', false, 'forged', NULL)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute(forged)
        session.execute("SET homing.user_id = '李雷'")
        assert visible() == {1}


def test_the_fence_covers_models_that_come_later_and_stays_up(opened: Opened, admin: psycopg.Connection) -> None:
    opened(row_security=True).close()
    opened().for_user(1).upsert([VectorRecord("a", "c", np.ones(5, np.float32), {}, "", "later@5")])
    rows = admin.execute(
        "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace "
        "AND relname NOT IN ('spaces', 'migrations', 'tickets') ORDER BY 1"
    ).fetchall()
    names = ("collections", "held", "records", "tallies", "vectors_1", "word_pieces", "word_removals", "word_segments")
    assert rows == [(name, True, True) for name in names]


def test_a_user_among_many_with_few_records_finds_all_of_them(fenced: PostgresStore) -> None:
    made = np.random.default_rng(5)
    for user in range(20):
        fenced.for_user(user).upsert(
            VectorRecord(f"{n:03d}", "notes", made.standard_normal(2).astype(np.float32), {}, f"用户{user} 词", "m@2")
            for n in range(3 if user == 7 else 100)
        )
    assert len(fenced.for_user(7).search("notes", QUERY, limit=10)) == 3
    assert len(fenced.for_user(7).search_text("notes", "词", limit=10)) == 3


NAMES = st.sampled_from(["a", "b", "' OR user_id <> '", "李雷"])
USERS = st.sampled_from(["", "1", "2", "1' OR '1'='1", "李雷", "%"])
WORDS = st.lists(st.sampled_from(["灯", "卧室", "light", "commit", *string.digits[:3]]), min_size=1, max_size=4)


class Isolation(RuleBasedStateMachine):
    """Whatever several users do in any order, each sees exactly what that user alone has written."""

    store: PostgresStore

    @initialize()
    def begin(self) -> None:
        self.written: dict[tuple[str, str, str], str] = {}
        for user in ("", "1", "2", "1' OR '1'='1", "李雷", "%"):
            for info in self.of(user).collections():
                self.of(user).drop(info.name)

    def of(self, user: str) -> PostgresStore:
        return self.store.for_user(user) if user else self.store

    def expected(self, user: str, collection: str) -> dict[str, str]:
        return {key[2]: text for key, text in self.written.items() if key[:2] == (user, collection)}

    @rule(user=USERS, collection=NAMES, name=NAMES, words=WORDS, angle=st.floats(0, 3))
    def write(self, user: str, collection: str, name: str, words: list[str], angle: float) -> None:
        text = f"{' '.join(words)} of<{user}>"
        vector = np.array([np.cos(angle), np.sin(angle)], np.float32)
        self.of(user).upsert([VectorRecord(name, collection, vector, {"user_id": "1", "k": words}, text, "m@2")])
        self.written[user, collection, name] = text

    @rule(user=USERS, collection=NAMES, name=NAMES)
    def delete(self, user: str, collection: str, name: str) -> None:
        there = self.written.pop((user, collection, name), None) is not None
        assert self.of(user).delete(collection, [name]) == there

    @rule(user=USERS, collection=NAMES)
    def drop(self, user: str, collection: str) -> None:
        gone = self.expected(user, collection)
        assert self.of(user).drop(collection) == len(gone)
        for name in gone:
            del self.written[user, collection, name]

    @rule(user=USERS, collection=NAMES, words=WORDS)
    def look(self, user: str, collection: str, words: list[str]) -> None:
        mine, expected = self.of(user), self.expected(user, collection)
        assert {match.id: match.text for match in mine.search(collection, QUERY, limit=100)} == expected
        assert {record.id: record.text for record in mine.records(collection)} == expected
        assert {record.id: record.text for record in mine.get(collection, ["a", "b", "李雷"])} == {
            name: text for name, text in expected.items() if name in ("a", "b", "李雷")
        }
        found = mine.search_text(collection, " ".join(words), limit=100)
        assert {match.id for match in found} <= set(expected)
        assert all(match.text == expected[match.id] for match in found)
        filtered = mine.search(collection, QUERY, limit=100, options=SearchOptions({"user_id": "1", "k": words}))
        assert {match.id for match in filtered} <= set(expected)
        assert {info.name: info.records for info in mine.collections()} == {
            name: len(self.expected(user, name)) for name in {key[1] for key in self.written if key[0] == user}
        }


@pytest.mark.slow
def test_no_order_of_calls_lets_anything_through(fenced: PostgresStore) -> None:
    machine = type("Isolation", (Isolation,), {"store": fenced})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=times(4, in_full=100),
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
