"""Three servers and two workers on one PostgreSQL, any of which is killed at any time: nobody notices.

A few rounds here; `HOMING_SOAK=1` runs many, with new interpreters, and restarts PostgreSQL among them.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from random import Random

import psycopg
import pytest

import homing
from homing.config import EmbeddingSettings, Settings
from homing.database.postgres.server import LocalServer
from homing.server.tokens import Tokens
from homing.server.users import OWNER, Users
from tests.cluster.members import Cluster, Person, wait_for
from tests.conftest import Database
from tests.effort import SOAK, times

ROUNDS = int(os.environ.get("HOMING_SOAK_ROUNDS") or times(4, in_full=12))
WRITES = 8
"""What each person writes in a round."""
MEMBERS = ("s1", "s2", "s3", "w1", "w2")
USERS = (OWNER, "lin", "王")


@pytest.fixture
def server(folder_of_servers: Path) -> Iterator[LocalServer]:
    """A server that may be restarted; it flushes to disk as it does for people."""
    own = LocalServer(folder_of_servers / secrets.token_hex(4))
    own.start()
    yield own
    own.remove()


def _settings(address: str) -> Settings:
    return Settings(store=address, row_security=True, embedding=EmbeddingSettings(provider=""))


def _people(address: str, cluster: Cluster, folder: Path) -> list[Person]:
    with homing.open(folder / "tokens", settings=_settings(address)) as app:
        tokens = Tokens(app.database)
        made = {user: tokens.create(user, "admin" if user == OWNER else "write").secret for user in USERS}
    return [
        Person(user, {"authorization": f"Bearer {secret}"}, cluster, Random(number))
        for number, (user, secret) in enumerate(made.items())
    ]


def _run_round(cluster: Cluster, people: list[Person], chance: Random, also: Callable[[], None]) -> None:
    """Everybody writes, and begins a job; meanwhile somebody is killed, after so many writes, and comes back."""
    victim, counted, left = chance.choice(MEMBERS), threading.Semaphore(0), chance.randrange(1, WRITES * len(people))

    def work(person: Person) -> None:
        for number in range(WRITES):
            if number == WRITES // 2:
                person.jobs.append(person.ask("POST", "/documents/island/reindex")["id"])
            person.write()
            person.search()
            counted.release()

    with ThreadPoolExecutor(len(people)) as pool:
        running = [pool.submit(work, person) for person in people]
        for _ in range(left):
            counted.acquire()
        cluster.kill(victim)
        also()
        cluster.start(victim)
        for one in running:
            one.result()


def _check_answers(cluster: Cluster, people: list[Person]) -> None:
    """Every server says the same, and what it says is what was acknowledged, to each their own."""
    for person in people:
        wait_for(lambda person=person: not person.ask("GET", "/memory")["waiting"])  # type: ignore[misc]
        wait_for(lambda person=person: not _pending(person))  # type: ignore[misc]
        for job in person.jobs:
            wait_for(lambda person=person, job=job: person.ask("GET", f"/jobs/{job}")["ended"] is not None)  # type: ignore[misc]
        answers = []
        for server in cluster.servers():
            documents = person.ask("GET", "/documents/island", server=server).get("documents", [])
            texts = {
                one["id"]: person.ask("GET", f"/documents/island/{one['id']}", server=server)["text"]
                for one in documents
            }
            listed = person.ask("GET", "/memory", server=server)["entries"]
            jobs = [person.ask("GET", f"/jobs/{job}", server=server) for job in person.jobs]
            assert texts == person.documents
            assert {one["id"]: one["text"] for one in listed} == person.memories
            assert {job["state"] for job in jobs} <= {"done"}, jobs
            answers.append((person.search(server), jobs))
        assert all(one == answers[0] for one in answers)
        found = [text for _, hits in answers[0][0] for _, text, _ in hits]
        assert all(person.name in text for text in found)
        said = [part for text in person.documents.values() for part in text.split("\n\n")]
        assert set(found) <= {*said, *person.memories.values()}
        assert len(found) == len(set(found))
        worded = person.ask(
            "POST", "/documents/island/search", {"query": "灯塔", "mode": "keyword", "limit": 100, "weaker": True}
        )
        assert sorted(hit["text"] for hit in worded["hits"]) == sorted(one for one in said if "灯塔" in one)


def _pending(person: Person) -> int:
    found = person.ask("GET", "/documents/island").get("documents", [])
    return sum(one["pending"] for one in found)


def _check_rows(address: str, admin: str, schema: str, people: list[Person], folder: Path) -> None:
    """Nothing is left over, nothing is doubled, and no row is a stranger's."""
    with homing.open(folder / "check", settings=_settings(address)) as app, closing(Users(app)) as users:
        for person in people:
            with users.lease(person.name) as own:
                assert own.documents.check() == own.store.check() == []
                assert own.engine.work.waiting() == 0
                chunks = sum(one.chunks for one in own.documents.documents("island"))
                assert len(own.store.ids("paragraphs")) == chunks == 2 * len(person.documents)
    with psycopg.connect(admin) as connection:
        rows = connection.execute(f'SELECT user_id, text FROM "{schema}".records').fetchall()
    assert rows
    assert all((user or OWNER) in text for user, text in rows)


@pytest.mark.slow
def test_whoever_is_killed_nothing_is_lost_doubled_or_a_strangers(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if SOAK:
        own: LocalServer = request.getfixturevalue("server")
        address, admin, schema = own.url, own.admin_url, "homing"
    else:
        database: Database = request.getfixturevalue("postgres")
        address, admin = request.getfixturevalue("new_schema")(), database.admin_url
        schema = address.rpartition("=")[2]

    def restart() -> None:
        own.stop()
        own.start()

    chance = Random(7)
    environ = {"HOMING_STORE": address, "HOMING_ROW_SECURITY": "true"}
    # However busy the machine is, answers are compared that have both legs.
    environ |= {"HOMING_SEARCH__DEADLINE": "600", "HOMING_EMBEDDING__QUERY_DEADLINE": "600"}
    cluster = Cluster(tmp_path, environ)
    people = _people(address, cluster, tmp_path)
    with closing(cluster):
        for name in MEMBERS:
            cluster.start(name)
        for person in people:
            person.save("kept")
        for number in range(ROUNDS):
            _run_round(cluster, people, chance, restart if SOAK and number == ROUNDS // 2 else lambda: None)
        _check_answers(cluster, people)
    _check_rows(address, admin, schema, people, tmp_path)
