"""`POST /knowledge/*` on a real server: the user is who the token says, on SQLite and on PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

import homing
from homing.app import Homing
from homing.config import ServerSettings, Settings, load
from homing.server.application import create_app
from homing.server.tokens import Tokens
from homing.testing.loopback import Fault, LoopbackApi
from tests.faults import Faulty, faulty
from tests.files.made_files import make_pdf
from tests.server.live import live

HANDBOOK = "员工每年有十五天带薪年假。".encode()
APART = ("mei", "tom", "小红")
"""Users of whom only one test knows."""
Ask = Callable[..., httpx2.Response]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def ask(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Sends a request as a user; `upload` takes a name and bytes, everything else a JSON body."""
    data: Path = tmp_path_factory.mktemp("served") / "data"
    store = ""
    if request.param == "postgres":
        store = request.getfixturevalue("new_database")()
    with served(Settings(store=store, row_security=bool(store)), data) as send:
        yield send


@contextmanager
def served(settings: Settings, data: Path) -> Iterator[Ask]:
    """Sends requests as users of a server with these settings."""
    settings = settings.model_copy(update={"server": ServerSettings(max_body=200_000), "data": data})
    with homing.open(data, settings=settings) as app:
        tokens = Tokens(app.database)
        secrets = {user: tokens.create(user, "write").secret for user in ("alice", "bob", "李雷", *APART)}
        secrets["reader"] = tokens.create("alice", "read").secret
    with homing.open(data, settings=settings) as app, live(create_app(app, exposed=True)) as address:

        def send(user: str, call: str, *, get: bool = False, **given: Any) -> httpx2.Response:
            headers = {"authorization": f"Bearer {secrets[user]}"} if user else {}
            method = "GET" if get else "POST"
            return httpx2.request(method, f"{address}/knowledge/{call}", headers=headers, timeout=60, **given)

        yield send


def upload(ask: Ask, user: str, name: str, content: bytes) -> httpx2.Response:
    return ask(user, "upload", files={"file": (name, content)})


def test_a_file_goes_through_upload_search_list_and_delete(ask: Ask) -> None:
    told = upload(ask, "alice", "员工手册.pdf", make_pdf([HANDBOOK.decode()])).json()
    assert told["file"]["file_name"] == "员工手册.pdf"
    assert (told["file"]["format"], told["file"]["embedded"], told["replaced"]) == ("pdf", True, False)
    found = ask("alice", "search", json={"query": "年假有几天"}).json()
    assert found["hits"][0]["metadata"]["fileName"] == "员工手册.pdf"
    assert found["mode"] == "hybrid"
    assert found["prompt"].startswith("### 资料 1 [相似度: ")
    assert [file["file_name"] for file in ask("alice", "list").json()["files"]] == ["员工手册.pdf"]
    assert ask("alice", "delete", json={"file_name": "员工手册.pdf"}).status_code == 200
    assert ask("alice", "list", json={}).json() == {"files": []}
    assert ask("alice", "search", json={"query": "年假有几天"}).json()["prompt"] == "暂无相关参考资料"


def test_users_never_see_each_other(ask: Ask) -> None:
    for user in APART:
        assert upload(ask, user, "假期.txt", f"{user}的年假安排".encode()).status_code == 200
    for user in APART:
        found = ask(user, "search", json={"query": "年假安排", "min_similarity": None})
        assert [hit["text"] for hit in found.json()["hits"]] == [f"{user}的年假安排"]
    ask(APART[1], "delete", json={"file_name": "假期.txt"})
    assert len(ask(APART[0], "list").json()["files"]) == 1
    assert ask(APART[1], "delete", json={"file_name": "假期.txt"}).status_code == 404


@pytest.mark.parametrize("field", ["user", "user_id", "userId"])
def test_a_body_cannot_name_a_user(ask: Ask, field: str) -> None:
    assert ask("bob", "search", json={"query": "年假", field: "alice"}).status_code == 422
    assert ask("bob", "list", json={field: "alice"}).status_code == 422
    assert ask("bob", "delete", json={"file_name": "a.txt", field: "alice"}).status_code == 422
    told = ask("bob", "upload", files={"file": ("b.txt", b"of bob")}, data={field: "alice"})
    assert told.status_code == 200
    assert "b.txt" not in [file["file_name"] for file in ask("alice", "list").json()["files"]]


def test_who_has_no_token_or_may_only_read_is_refused(ask: Ask) -> None:
    assert ask("", "list").status_code == 401
    assert upload(ask, "reader", "a.txt", b"text").status_code == 403
    assert ask("reader", "delete", json={"file_name": "a.txt"}).status_code == 403
    assert ask("reader", "list").status_code == 200


@pytest.mark.parametrize(
    ("name", "content", "status", "code"),
    [
        ("a.pptx", b"x", 415, "UNSUPPORTED_FILE"),
        ("a.pdf", make_pdf(["x"], password="y"), 422, "FILE_ENCRYPTED"),
        ("a.pdf", make_pdf([]), 422, "FILE_WITHOUT_TEXT"),
        ("a.docx", b"PK\x03\x04", 422, "FILE_DAMAGED"),
        ("a.txt", b"x" * 300_000, 413, "BODY_TOO_LARGE"),
        ("..", b"x", 400, "INVALID_ARGUMENT"),
    ],
)
def test_files_that_cannot_be_taken_get_a_clear_error(
    ask: Ask, name: str, content: bytes, status: int, code: str
) -> None:
    told = upload(ask, "bob", name, content)
    assert (told.status_code, told.json()["error"]["code"]) == (status, code)


def long_text(paragraphs: int) -> bytes:
    return "\n\n".join(f"第{number}条：员工在第{number}年有{number}天年假。" for number in range(paragraphs)).encode()


@pytest.mark.slow
def test_a_large_file_is_taken_in_by_a_job_while_the_old_one_or_the_new_one_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homing.server.routes.files.SMALL", 20_000)
    with (
        faulty(tmp_path, "slow") as model,
        served(load(model.settings, environ={}).settings, tmp_path / "data") as ask,
    ):
        model.release()
        take_in_a_large_file(ask, model)


def take_in_a_large_file(ask: Ask, model: Faulty) -> None:
    assert upload(ask, "alice", "制度.txt", "加班有双倍工资。".encode()).status_code == 200
    content = long_text(1_500)
    # The job goes on until its vectors are there.
    model.hold()
    begun = upload(ask, "alice", "制度.txt", content)
    assert begun.status_code == 202
    job = begun.json()
    assert (job["kind"], job["subject"], job["result"]) == ("upload", "制度.txt", None)
    asked = {"query": "加班 年假", "file_names": ["制度.txt"]}
    texts = [hit["text"] for hit in ask("alice", "search", json=asked).json()["hits"]]
    assert texts == ["加班有双倍工资。"] or (texts and all(text in content.decode() for text in texts))
    again = upload(ask, "alice", "制度.txt", content)
    assert (again.status_code, again.json()["error"]["details"]) == (409, {"job": job["id"]})
    model.release()
    ended = followed(ask, "alice", job["id"])
    assert (ended["state"], ended["done"]) == ("done", ended["total"])
    told = ended["result"]
    assert (told["file"]["file_name"], told["file"]["embedded"], told["replaced"]) == ("制度.txt", True, True)
    assert told["file"]["chunks"] == ended["total"] > 10
    found = ask("alice", "search", json={"query": "第1499条"}).json()["hits"]
    assert "第1499条" in found[0]["text"]
    assert upload(ask, "alice", "制度.txt", b"short").json()["replaced"]


def followed(ask: Ask, user: str, job: str) -> dict[str, Any]:
    """A job when it has ended."""
    for _ in range(3_000):
        told: dict[str, Any] = ask(user, f"../jobs/{job}", get=True).json()
        if told["ended"] is not None:
            return told
        time.sleep(0.1)
    raise AssertionError(told)


def test_what_is_wrong_with_a_large_file_is_said_at_once_or_by_its_job(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homing.server.routes.files.SMALL", 1_000)
    refused = upload(ask, "bob", "a.pptx", b"x" * 5_000)
    assert (refused.status_code, refused.json()["error"]["code"]) == (415, "UNSUPPORTED_FILE")
    begun = upload(ask, "bob", "a.docx", b"PK\x03\x04" * 1_000).json()
    failed = followed(ask, "bob", begun["id"])
    assert (failed["state"], failed["error"]["code"]) == ("failed", "FILE_DAMAGED")
    assert ask("alice", f"../jobs/{begun['id']}", get=True).status_code == 404


def test_a_request_without_a_file_says_so(ask: Ask) -> None:
    assert ask("bob", "upload", json={"file": "text"}).status_code == 422
    assert ask("bob", "upload", content=b"not multipart").status_code == 422


def test_both_legs_down_is_an_error_with_the_specified_text(new_database: Callable[[], str], tmp_path: Path) -> None:
    with (
        homing.open(tmp_path / "data", settings=Settings(store=new_database())) as app,
        live(create_app(app)) as address,
    ):
        files = {"file": ("a.txt", HANDBOOK)}
        assert httpx2.post(f"{address}/knowledge/upload", files=files, timeout=60).status_code == 200
        app.store.close()
        failed = httpx2.post(f"{address}/knowledge/search", json={"query": "年假"}, timeout=60)
    assert failed.status_code == 500
    assert failed.json()["error"]["code"] == "RETRIEVAL_FAILED"
    assert failed.json()["error"]["message"].startswith("知识库检索失败")
    assert set(failed.json()["error"]["details"]) == {"vector", "keyword"}


def test_a_file_that_came_while_the_model_was_down_gets_its_vectors_when_it_is_back(tmp_path: Path) -> None:
    with LoopbackApi(key="sk") as api, homing.open(tmp_path / "data", settings=Settings()) as app:
        app.models.config.create_provider("remote", "openai", api_key="sk", base_url=f"{api.url}/v1")
        app.models.config.create_model(
            "remote", "text-embedding-3-small", model_config={"dimensions": 64}, is_default=True
        )
        with live(create_app(app)) as address:

            def post(call: str, **given: Any) -> Any:
                return httpx2.post(f"{address}/knowledge/{call}", timeout=60, **given).json()

            def embedded() -> list[bool]:
                return [file["embedded"] for file in post("list")["files"]]

            api.always = Fault(status=500)
            assert not post("upload", files={"file": ("a.txt", HANDBOOK)})["file"]["embedded"]
            assert post("search", json={"query": "年假"})["degraded"]
            assert embedded() == [False]
            api.always = None
            # Nobody uploads or searches: the worker comes back to it.
            assert app.engine.worker.wait(lambda: embedded() == [True], 60)
            assert {leg["leg"] for leg in post("search", json={"query": "年假"})["hits"][0]["legs"]} >= {"keyword"}


def test_on_postgres_everybody_is_in_the_store_that_the_settings_name(
    new_database: Callable[[], str], tmp_path: Path
) -> None:
    settings = Settings(store=new_database(), data=tmp_path / "data")
    with homing.open(tmp_path / "data", settings=settings) as app:
        tenant = Homing(settings.model_copy(update={"data": tmp_path / "tenant", "store": ""}), shared=app)
        tenant.knowledge("韩梅梅").upload(HANDBOOK, "a.txt")
        assert [file.name for file in app.knowledge("韩梅梅").list()] == ["a.txt"]
        assert app.knowledge("somebody else").list() == []
        assert "韩梅梅" in {getattr(store, "user_id", "") for store in app.stores}
        tenant.close()
