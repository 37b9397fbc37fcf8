"""A home that the shell loads while the server runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from homing.app import Homing
from homing.server.application import create_app
from tests import forked
from tests.server.conftest import LOOPBACK


def load(home: Path, data: Path, room: str) -> None:
    """`homing devices load`, in a process of its own."""
    devices = [{"id": f"{room}-lamp", "name": "主灯", "type": "light", "room": room}]
    home.write_text(json.dumps({"devices": devices, "rooms": [{"name": room}]}), encoding="utf-8")
    forked.run(["devices", "load", str(home), "--data", str(data)]).check_returncode()


@pytest.mark.slow
def test_a_home_that_is_loaded_by_the_shell_answers_the_next_sentence(data: Homing, tmp_path: Path) -> None:
    with TestClient(create_app(data), base_url=LOOPBACK) as client:

        def ask(sentence: str) -> list[str]:
            found: list[str] = client.post("/devices/ask", json={"text": sentence}).json()["devices"]
            return found

        assert ask("打开卧室的灯") == []
        for room in ("卧室", "客厅"):
            load(tmp_path / "home.json", data.settings.data, room)
            assert ask(f"打开{room}的灯") == [f"{room}-lamp"]
            assert [one["id"] for one in client.get("/devices").json()["devices"]] == [f"{room}-lamp"]
        assert ask("打开卧室的灯") == []
    assert not (data.settings.data / "devices.json").exists()
