"""The server as people run it: a process that is started, killed and stopped."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import threading
import time
from pathlib import Path

import httpx2
import pytest

import homing
from homing.config import Settings
from homing.testing.loopback import Fault, LoopbackApi
from tests import forked
from tests.server.process import serving
from tests.server.test_front_door import certificate

KEY = "sk-very-secret-key"


def configured(data: Path, api: LoopbackApi) -> None:
    """A folder whose default model is behind that API."""
    with homing.open(data, settings=Settings()) as app:
        config = app.models.config
        config.create_provider("remote", "openai", api_key=KEY, base_url=api.url + "/v1")
        config.create_model("remote", "text-embedding-3-small", model_config={"dimensions": 64}, is_default=True)


@pytest.mark.slow
def test_told_to_stop_it_embeds_what_waits_and_loses_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with LoopbackApi(key=KEY) as api:
        configured(data, api)
        with serving(data) as server, httpx2.Client(base_url=server.address, timeout=120) as client:
            # Slow enough that most of it still waits when the signal comes.
            api.always = Fault(delay=0.3)
            for number in range(120):
                assert client.post("/memory/remember", json={"text": f"记忆 {number}"}).status_code == 201
            over = threading.Event()
            api.always = Fault(text=lambda answer: answer if over.wait(600) else "")
            assert client.put("/documents/novel/ch1", json={"text": "灯塔。\n\n海。"}).status_code == 200
            assert client.get("/health").json()["store"]["waiting"] > 0
            over.set()
            assert server.stop(signal.SIGTERM) == 0
            told = server.log.read_text(encoding="utf-8")
    with homing.open(data, settings=Settings()) as app:
        assert app.memory.count("knowledge") == 120
        assert app.engine.work.waiting() == 0
        embedded = {info.name: info.embedded for info in app.store.collections()}
        assert embedded == {"knowledge": 120, "paragraphs": 2}
    assert KEY not in told


@pytest.mark.slow
def test_killed_with_work_waiting_the_next_one_carries_on(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with LoopbackApi(key=KEY) as api:
        configured(data, api)
        api.always = Fault(hang_up=True)
        with serving(data) as server, httpx2.Client(base_url=server.address, timeout=120) as client:
            for number in range(20):
                assert client.post("/memory/remember", json={"text": f"记忆 {number}"}).status_code == 201
            server.stop(signal.SIGKILL)
        api.always = None
        with serving(data) as server, httpx2.Client(base_url=server.address, timeout=120) as client:
            assert client.get("/memory").json()["counts"]["knowledge"] == 20
            while client.get("/memory").json()["waiting"]:
                # The model is there again; what the killed server left is this one's to embed.
                time.sleep(0.5)
            assert server.stop(signal.SIGINT) == 0
    with homing.open(data, settings=Settings()) as app:
        assert next(info.embedded for info in app.store.collections()) == 20


@pytest.mark.slow
def test_with_a_certificate_it_serves_https_and_nothing_else(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with serving(tmp_path / "data", "--cert", str(cert), "--key", str(key), "--host", "localhost") as server:
        assert server.address.startswith("https://localhost:")
        trusting = ssl.create_default_context(cafile=str(cert))
        with httpx2.Client(base_url=server.address, verify=trusting, timeout=120) as client:
            assert client.put("/documents/novel/ch1", json={"text": "灯塔"}).status_code == 200
            assert client.post("/documents/novel/search", json={"query": "灯塔"}).json()["hits"]
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"{server.address}/health")
        with pytest.raises(httpx2.RemoteProtocolError):
            httpx2.get(f"{server.address.replace('https', 'http')}/health")
        assert server.stop(signal.SIGTERM) == 0


@pytest.mark.slow
def test_the_log_is_json_with_the_request_and_without_what_was_said(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        headers = {"x-request-id": "trace-1", "authorization": "Bearer hmg_secret_token"}
        asked = {"query": "私密的问题"}
        assert (
            httpx2.post(f"{server.address}/memory/recall?note=hidden", json=asked, headers=headers).status_code == 200
        )
        httpx2.post(f"{server.address}/memory/remember", json={"text": "私密的记忆"})
        assert server.stop(signal.SIGTERM) == 0
        [line] = [line for line in server.lines() if line.get("request_id") == "trace-1"]
        told = server.log.read_text(encoding="utf-8")
    assert (line["method"], line["path"], line["status"], line["user"]) == ("POST", "/memory/recall", 200, "owner")
    assert line["ms"] > 0
    for secret in ("私密", "hidden", "secret_token"):
        assert secret not in told


@pytest.mark.slow
def test_what_people_search_for_is_logged_only_where_that_was_asked_for(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--log-queries") as server:
        httpx2.post(f"{server.address}/memory/recall", json={"query": "灯塔"})
        server.stop(signal.SIGTERM)
        assert [line["query"] for line in server.lines() if "query" in line] == ["灯塔"]


@pytest.mark.slow
def test_a_stream_that_is_followed_does_not_keep_it_from_stopping(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with LoopbackApi(key=KEY) as api:
        configured(data, api)
        with serving(data) as server, httpx2.Client(base_url=server.address, timeout=120) as client:
            client.put("/documents/novel/ch1", json={"text": "\n\n".join(f"第{number}段。" for number in range(400))})
            api.always = Fault(delay=0.5)
            job = client.post("/documents/novel/reindex").json()
            with client.stream("GET", f"/jobs/{job['id']}/events") as events:
                lines = events.iter_lines()
                assert next(lines).startswith("id: ")
                server.process.send_signal(signal.SIGTERM)
                list(lines)
            assert server.process.wait(120) == 0


@pytest.mark.slow
def test_a_change_of_the_model_that_was_killed_is_taken_up_by_the_next_server(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with LoopbackApi(key=KEY) as api:
        with homing.open(data, settings=Settings()) as app:
            app.add({str(number): f"文字 text {number}" for number in range(600)})
            config = app.models.config
            config.ensure_default_embedding_model()
            config.create_provider("remote", "openai", api_key=KEY, base_url=api.url + "/v1")
            config.create_model("remote", "text-embedding-3-small", model_config={"dimensions": 64})
        with serving(data) as server, httpx2.Client(base_url=server.address, timeout=120) as client:
            api.always = Fault(delay=0.2)
            job = client.post("/models/default", json={"name": "text-embedding-3-small"}).json()
            while client.get(f"/jobs/{job['id']}").json()["done"] == 0:
                time.sleep(0.05)
            server.stop(signal.SIGKILL)
        api.always = None
        with serving(data) as server, httpx2.Client(base_url=server.address, timeout=120) as client:
            while not client.get("/models/switch").json()["finished"]:
                time.sleep(0.1)


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return forked.run(arguments, cwd=cwd)


@pytest.mark.slow
def test_it_says_why_it_does_not_start(tmp_path: Path) -> None:
    refused = run("serve", "--host", "0.0.0.0", "--port", "0", "--data", "data", cwd=tmp_path)
    assert refused.returncode == 3
    assert "homing tokens create" in refused.stderr
    with serving(tmp_path / "data") as server:
        port = server.address.rpartition(":")[2]
        taken = run("serve", "--port", port, "--data", "data", cwd=tmp_path)
    assert taken.returncode == 3
    assert "--port" in taken.stderr


@pytest.mark.slow
def test_a_token_from_the_shell_opens_the_server_until_it_is_revoked(tmp_path: Path) -> None:
    made = run("tokens", "create", "--user", "林", "--scope", "write", "--json", "--data", "data", cwd=tmp_path)
    token = json.loads(made.stdout)
    listed = run("tokens", "list", "--json", "--data", "data", cwd=tmp_path)
    assert [one["user"] for one in json.loads(listed.stdout)] == ["林"]
    assert token["token"] not in listed.stdout
    with serving(tmp_path / "data", "--host", "0.0.0.0") as server:
        headers = {"authorization": f"Bearer {token['token']}"}
        assert httpx2.get(f"{server.address}/memory").status_code == 401
        assert httpx2.get(f"{server.address}/memory", headers=headers).status_code == 200
        assert run("tokens", "revoke", token["id"], "--data", "data", cwd=tmp_path).returncode == 0
        assert httpx2.get(f"{server.address}/memory", headers=headers).status_code == 401
    assert run("tokens", "create", "--scope", "all", "--data", "data", cwd=tmp_path).returncode == 3
