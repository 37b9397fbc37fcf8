"""`POST /map` and the page's own files, over HTTP without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import homing
from homing.app import Homing
from homing.config import Settings
from homing.server.application import create_app
from homing.testing.loopback import Fault, LoopbackApi

pytestmark = pytest.mark.slow

KEY = "sk-map"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homing]:
    with homing.open(tmp_path_factory.mktemp("map") / "data", settings=Settings()) as app:
        app.documents.save("novel", "灯塔", "老周守着灯塔。\n\n海鸟落在栏杆上。")
        app.documents.save("manual", "engine", "Change the spark plug once a year.")
        app.memory.remember("observation", "用户不吃辣，对花生过敏。")
        app.documents.flush()
        app.engine.flush()
        yield app


@pytest.fixture(scope="module")
def client(app: Homing) -> Iterator[TestClient]:
    with TestClient(create_app(app), base_url="http://127.0.0.1") as client:
        yield client


def drawn(client: TestClient, **asked: Any) -> dict[str, Any]:
    answer = client.post("/map", json=asked)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def test_every_vector_is_a_point_of_its_source_and_group(client: TestClient) -> None:
    told = drawn(client)
    assert {(one["source"], one["group"]) for one in told["points"]} == {
        ("documents", "灯塔"),
        ("documents", "engine"),
        ("memory", "observation"),
    }
    assert told["total"] == 4
    assert told["query"] is None
    assert 0 < told["shown"] <= 1
    assert all(-1 <= one[axis] <= 1 for one in told["points"] for axis in ("x", "y"))


def test_a_question_has_a_place_and_its_true_neighbours(client: TestClient) -> None:
    told = drawn(client, query="海鸟在哪里")
    assert set(told["query"]) == {"x", "y"}
    assert told["near"][0]["label"] == "海鸟落在栏杆上。"
    cosines = [one["cosine"] for one in told["near"]]
    assert cosines == sorted(cosines, reverse=True)


def test_one_source_one_project_and_a_sample(client: TestClient) -> None:
    assert {one["source"] for one in drawn(client, source="memory")["points"]} == {"memory"}
    assert {one["group"] for one in drawn(client, source="documents", project="manual")["points"]} == {"engine"}
    few = drawn(client, limit=2)
    assert (len(few["points"]), few["total"]) == (2, 4)
    assert drawn(client, source="documents", project="nothing")["points"] == []


def test_the_same_question_draws_the_same_map(client: TestClient) -> None:
    assert drawn(client, query="灯塔") == drawn(client, query="灯塔")


def test_of_many_an_even_sample_is_drawn_and_the_nearest_of_all(tmp_path: Path) -> None:
    bird = "海鸟落在栏杆上。"
    with homing.open(tmp_path / "data", settings=Settings()) as app:
        for book in ("账本一", "账本二", "账本三"):
            days = [f"{book}：第{day}天卖出{day}条鱼。" for day in range(40)]
            app.documents.save("shop", book, "\n\n".join([*days[:5], bird if book == "账本二" else "无。", *days[5:]]))
        app.documents.flush()
        with TestClient(create_app(app), base_url="http://127.0.0.1") as client:
            told = drawn(client, query="海鸟在哪里", limit=9)
            plain = drawn(client, limit=9)
    assert told["total"] == 123
    assert {one["group"] for one in plain["points"]} == {"账本一", "账本二", "账本三"}
    assert len(plain["points"]) == 9
    assert bird not in [one["label"] for one in plain["points"]]
    assert told["near"][0]["label"] == bird
    assert told["points"][:9] == plain["points"]
    assert {one["id"] for one in told["near"]} <= {one["id"] for one in told["points"]}


@pytest.mark.parametrize("wrong", [{"limit": 1}, {"limit": "9"}, {"source": "devices"}, {"query": " "}, {"x": 1}])
def test_a_wrong_request_is_refused(client: TestClient, wrong: dict[str, Any]) -> None:
    assert client.post("/map", json=wrong).status_code == 422


def test_without_its_model_a_map_is_drawn_without_the_question(tmp_path: Path) -> None:
    with LoopbackApi(key=KEY) as api, homing.open(tmp_path / "data", settings=Settings()) as app:
        app.models.config.ensure_default_embedding_model()
        app.models.config.create_provider("loopback", "openai", base_url=f"{api.url}/v1", api_key=KEY)
        model = app.models.config.create_model("loopback", "text-embedding-3-small", model_config={"dimensions": 64})
        app.switch.make_default(model)
        app.documents.save("novel", "灯塔", "老周守着灯塔。\n\n海鸟落在栏杆上。")
        app.documents.flush()
        api.always = Fault(status=500)
        with TestClient(create_app(app), base_url="http://127.0.0.1") as client:
            told = drawn(client, query="海鸟在哪里")
    assert told["degraded"]
    assert told["reason"].startswith("vector:")
    assert told["query"] is None
    assert len(told["points"]) == 2


def test_the_page_has_a_strict_policy_and_is_not_sent_twice(client: TestClient) -> None:
    page = client.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert client.get("/", headers={"if-none-match": page.headers["etag"]}).status_code == 304


@pytest.mark.parametrize(
    "path", ["/page/../service.py", "/page/..%2Fservice.py", "/page//etc/passwd", "/page/nothing.js", "/page/"]
)
def test_only_the_files_of_the_page_are_handed_out(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_the_page_names_no_other_host_and_holds_no_inline_script_or_style(client: TestClient) -> None:
    html = client.get("/").text
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert "https://" not in html
    assert " style=" not in html
    assert " onclick" not in html
    assert "<style" not in html
    assert html.count("<script") == html.count('<script type="module" src="/page/')
