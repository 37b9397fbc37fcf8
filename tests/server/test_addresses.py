"""Names in addresses: whatever a name may hold reaches the thing of that name, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from homing.app import Homing
from homing.server.application import create_app


@pytest.fixture
def client(data: Homing) -> Iterator[TestClient]:
    with TestClient(create_app(data), base_url="http://127.0.0.1") as client:
        yield client


NAMES = [
    "第一章 灯塔",
    "卷一/第一章",
    "../../etc/passwd",
    "😀👩‍👩‍👧",
    "１２３",
    "100% sure?",
    "line\nbreak",
    "ch1\n",
    " ",
    "a#b&c=d",
    "章" * 512,
]


def test_a_document_of_any_name_is_saved_read_and_deleted(client: TestClient) -> None:
    for name in NAMES:
        address = f"/documents/{quote(name.replace('/', '|'), safe='')}/{quote(name, safe='')}"
        assert client.put(address, json={"text": "他守着灯塔"}).status_code == 200, name
        read = client.get(address).json()
        assert (read["id"], read["text"]) == (name, "他守着灯塔")
        assert len(client.get(f"{address}/chunks").json()["chunks"]) == 1
        assert client.delete(address).json() == {"deleted": 1}


def test_a_line_break_at_the_end_is_part_of_the_name(client: TestClient) -> None:
    client.put("/documents/novel/ch1", json={"text": "他守着灯塔"})
    assert client.delete("/documents/novel/ch1%0a").status_code == 404
    assert client.put("/documents/novel/ch1%0a", json={"text": ""}).status_code == 200
    assert client.get("/documents/novel/ch1").json()["text"] == "他守着灯塔"
    assert client.get("/skills/nothing%0a").json()["error"]["message"].startswith(r"no skill 'nothing\n'")


def test_what_was_remembered_under_any_id_can_be_forgotten(client: TestClient) -> None:
    for name in NAMES:
        assert client.post("/memory/remember", json={"text": "灯塔 lighthouse", "id": name}).status_code == 201
        assert client.delete(f"/memory/{quote(name, safe='')}").json() == {"forgotten": 1}, name


def test_names_in_another_encoding_are_refused_before_they_become_one(client: TestClient) -> None:
    for encoded in ("%B5%C6%CB%FE", "%ff%fe", "%ED%A0%80"):
        for answer in (
            client.put(f"/documents/novel/{encoded}", json={"text": "灯塔"}),
            client.delete(f"/memory/{encoded}"),
            client.get(f"/memory?session_key={encoded}"),
        ):
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (400, "INVALID_ARGUMENT")
            assert "UTF-8" in error["message"]
    assert client.get("/documents").json() == {"projects": []}


@pytest.mark.parametrize("path", ["/documents/novel/%00", "/documents/%00/ch1", "/memory/%00"])
def test_nul_is_in_no_name(client: TestClient, path: str) -> None:
    answer = client.delete(path)
    assert answer.status_code in (400, 422)
    assert "NUL" in answer.json()["error"]["message"]
