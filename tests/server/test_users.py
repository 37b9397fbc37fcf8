"""What one user has, no other sees: over every route, whatever the names are."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import homing
from homing.app import Homing
from homing.config import ServerSettings, Settings
from homing.errors import Overloaded
from homing.server.application import create_app
from homing.server.tokens import Tokens
from homing.server.users import OWNER, Users, folder_name
from tests.server.conftest import LOOPBACK

SECRET = "宝藏埋在灯塔下面"
USERS = ("lin", "Lin", "林", "../lin", "owner/../lin", "a" * 200)


class Person:
    """A user with a token, and what they ask."""

    def __init__(self, client: TestClient, secret: str) -> None:
        self._client = client
        self._headers = {"authorization": f"Bearer {secret}"}

    def __call__(self, method: str, path: str, body: object = None) -> str:
        answer = self._client.request(method, path, json=body, headers=self._headers)
        assert answer.status_code in (200, 201, 202, 404), answer.text
        return answer.text


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Person]]:
    data = tmp_path_factory.mktemp("users")
    with homing.open(data, settings=Settings()) as app:
        tokens = Tokens(app.database)
        secrets = {name: tokens.create(name, "write").secret for name in (OWNER, *USERS)}
        with TestClient(create_app(app), base_url=LOOPBACK) as client:
            yield {name: Person(client, secret) for name, secret in secrets.items()}


def settle(person: Person) -> None:
    """Until everything that the user saved is embedded: what cannot be found yet proves nothing."""
    while json.loads(person("GET", "/memory"))["waiting"]:
        time.sleep(0.05)


def ask_everything(person: Person) -> str:
    """Everything a user can read, by every route that could show another's."""
    asked = [
        person("POST", "/search", {"query": "宝藏 灯塔", "limit": 100}),
        person("POST", "/memory/recall", {"query": "宝藏", "limit": 100}),
        person("GET", "/memory"),
        person("GET", "/documents"),
        person("GET", "/documents/island"),
        person("GET", "/documents/island/map"),
        person("GET", "/documents/island/map/chunks"),
        person("POST", "/documents/island/search", {"query": "宝藏", "min_score": None}),
        person("POST", "/documents/island/search", {"query": "宝藏", "mode": "keyword"}),
        person("GET", "/devices"),
        person("POST", "/devices/ask", {"text": "打开宝藏灯"}),
        person("GET", "/models/switch"),
        person("GET", "/jobs"),
        person("POST", "/ipc/search:fts:query", {"projectId": "island", "query": "宝藏"}),
    ]
    return "\n".join(asked)


@pytest.mark.slow
@pytest.mark.parametrize("name", USERS)
def test_nothing_of_one_user_reaches_another(people: dict[str, Person], name: str) -> None:
    person = people[name]
    marked = f"{SECRET} {USERS.index(name)}#"
    person("POST", "/memory/remember", {"text": marked, "id": "treasure"})
    person("PUT", "/documents/island/map", {"text": marked})
    person("PUT", "/devices", {"devices": [{"id": marked, "name": "宝藏灯", "type": "light"}]})
    person("POST", "/documents/island/reindex")
    settle(person)
    assert marked in person("POST", "/memory/recall", {"query": "宝藏", "limit": 100})
    assert marked in ask_everything(person)
    for other, who in people.items():
        if other != name:
            assert marked not in ask_everything(who), other


def test_deleting_by_another_user_deletes_nothing(people: dict[str, Person]) -> None:
    people["lin"]("POST", "/memory/remember", {"text": SECRET, "id": "mine"})
    people["lin"]("PUT", "/documents/own/ch", {"text": SECRET})
    assert "NOT_FOUND" in people["林"]("DELETE", "/memory/mine")
    assert "NOT_FOUND" in people["林"]("DELETE", "/documents/own/ch")
    people["林"]("DELETE", "/documents/own")
    assert SECRET in people["lin"]("GET", "/documents/own/ch")
    assert SECRET in people["lin"]("GET", "/memory")


def test_skills_and_models_are_everybodys(people: dict[str, Person]) -> None:
    assert people["lin"]("GET", "/skills") == people["林"]("GET", "/skills")
    assert people["lin"]("GET", "/models") == people[OWNER]("GET", "/models")


@pytest.mark.slow
@given(st.text(min_size=1, max_size=60), st.text(min_size=1, max_size=60))
def test_no_two_users_share_a_folder_and_none_leaves_it(one: str, other: str) -> None:
    for user in (one, other):
        name = folder_name(user)
        assert Path(name).name == name
        assert len(name.encode()) <= 200
        assert not name.startswith((".", "-"))
    assert one == other or folder_name(one).casefold() != folder_name(other).casefold()


@pytest.mark.slow
def test_few_are_kept_open_and_none_that_is_used_is_closed(data: Homing) -> None:
    users = Users(data, most=2)
    with users.lease("a") as first:
        first.memory.remember("knowledge", "灯塔")
        with users.lease("b"), pytest.raises(Overloaded), users.lease("c"):
            pass
        assert first.memory.count("knowledge") == 1
    with users.lease("c"), users.lease("d"):
        assert not users.is_open("a")
    # The folder of the first is closed behind the scenes, after what waited was embedded.
    with users.lease("a") as again:
        assert again is not first
        while again.engine.work.waiting():
            time.sleep(0.05)
        assert [entry.text for entry in again.memory.list("knowledge")] == ["灯塔"]
    assert set(users.known()) == {OWNER, "a", "b", "c", "d"}
    users.close()


@pytest.mark.slow
def test_the_users_are_known_by_their_whole_names_while_their_folders_are_opened(data: Homing) -> None:
    names = ["林", "a" * 200]
    users = Users(data, most=1)
    for name in names:
        with users.lease(name):
            pass
    written = {name: (users.folder(name) / "user.txt").stat() for name in names}
    for name in names:
        with users.lease(name):
            assert set(users.known()) == {OWNER, *names}
    # What is not written again is never read half-written.
    for name, before in written.items():
        after = (users.folder(name) / "user.txt").stat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        assert [one.name for one in users.folder(name).glob("user.txt*")] == ["user.txt"]
    users.close()


def test_many_threads_open_a_user_once(data: Homing) -> None:
    users = Users(data)

    def remember(number: int) -> int:
        with users.lease("lin") as app:
            app.memory.remember("knowledge", f"{number}")
            return id(app.memory)

    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(remember, range(32)))) == 1
    with users.lease("lin") as app:
        assert app.memory.count("knowledge") == 32
    users.close()


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(name=st.sampled_from(["users", "..", ".", "tokens.db", "homing.db", "con", "nul.txt", "~"]))
def test_odd_names_stay_below_the_folder_of_users(data: Homing, name: str) -> None:
    folder = Users(data).folder(name)
    assert folder.parent == data.settings.data / "users"


def test_a_store_that_the_settings_name_is_the_owners_alone(tmp_path: Path) -> None:
    settings = Settings(store=f"sqlite:///{tmp_path / 'elsewhere.db'}", server=ServerSettings(users=1))
    with homing.open(tmp_path / "data", settings=settings) as app:
        users = Users(app)
        with users.lease("lin") as other:
            assert other.settings.store_url != app.settings.store_url
            assert other.models is app.models
        users.close()


def test_over_mcp_a_token_reaches_its_user_and_no_other(people: dict[str, Person]) -> None:
    def call(person: Person, tool: str, arguments: dict[str, str]) -> str:
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        return person("POST", "/mcp", asked)

    people["lin"]("POST", "/memory/remember", {"text": "lin 的宝藏在井里"})
    people["林"]("POST", "/memory/remember", {"text": "林 的宝藏在屋顶"})
    settle(people["lin"])
    settle(people["林"])
    assert "在井里" in call(people["lin"], "recall", {"query": "宝藏"})
    for name in ("Lin", "林", OWNER):
        assert "在井里" not in call(people[name], "recall", {"query": "宝藏"})
