"""Who may come in, as whom, and for what."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import homing
from homing.app import Homing
from homing.config import ServerSettings, Settings
from homing.database import Database
from homing.errors import ConfigError, InvalidArgument, NotFound, Unauthorized
from homing.server.application import create_app
from homing.server.tokens import Tokens
from tests.server.conftest import LOOPBACK


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@pytest.fixture
def tokens(data: Homing) -> Iterator[Tokens]:
    """As another process has them: what is done here is not done by the server itself."""
    with homing.open(data.settings.data, settings=Settings()) as other:
        yield Tokens(other.database)


@pytest.fixture
def served(data: Homing) -> Iterator[TestClient]:
    with TestClient(create_app(data), base_url=LOOPBACK) as client:
        yield client


def test_a_server_that_others_reach_does_not_start_without_a_token(tmp_path: Path) -> None:
    settings = Settings(server=ServerSettings(host="0.0.0.0"))
    with homing.open(tmp_path, settings=settings) as app:
        with pytest.raises(ConfigError, match="homing tokens create"):
            create_app(app)
        made = Tokens(app.database).create("owner", "read")
        with TestClient(create_app(app), base_url="http://box.lan:8765") as client:
            assert client.get("/memory").status_code == 401
            assert client.get("/memory", headers=bearer(made.secret)).status_code == 200


def test_revoking_the_last_token_does_not_open_an_exposed_server(data: Homing, tokens: Tokens) -> None:
    made = tokens.create("owner", "read")
    with TestClient(create_app(data, exposed=True), base_url=LOOPBACK) as client:
        assert client.get("/memory", headers=bearer(made.secret)).status_code == 200
        tokens.revoke(made.token.id)
        assert client.get("/memory", headers=bearer(made.secret)).status_code == 401
        assert client.get("/memory").status_code == 401


def test_on_loopback_the_first_token_closes_the_door(served: TestClient, tokens: Tokens) -> None:
    assert served.get("/memory").status_code == 200
    made = tokens.create("owner", "read")
    refused = served.get("/memory")
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "UNAUTHORIZED")
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert served.get("/memory", headers=bearer(made.secret)).status_code == 200


def test_without_a_token_only_what_holds_no_data_is_shown(served: TestClient, tokens: Tokens) -> None:
    tokens.create("owner", "read")
    health = served.get("/health").json()
    assert (health["status"], health["model"], health["store"]) == ("ok", None, None)
    assert served.get("/").status_code == 200
    assert served.get("/openapi.json").status_code == 200
    for path in ("/metrics", "/doctor", "/skills", "/documents", "/models", "/jobs", "/devices", "/v1/models"):
        assert served.get(path).status_code == 401, path
    for path in ("/search", "/v1/embeddings", "/ipc/rag:retrieve", "/mcp", "/nothing"):
        assert served.post(path, json={}).status_code == 401, path


@pytest.mark.parametrize(("scope", "reads", "writes", "administers"), [
    ("read", True, False, False), ("write", True, True, False), ("admin", True, True, True),
])  # fmt: skip
def test_a_token_reaches_as_far_as_its_scope(
    served: TestClient, tokens: Tokens, scope: str, reads: bool, writes: bool, administers: bool
) -> None:
    headers = bearer(tokens.create("lin", scope).secret)  # type: ignore[arg-type]
    read = served.get("/memory", headers=headers)
    written = served.post("/memory/remember", json={"text": "灯塔"}, headers=headers)
    administered = served.post("/skills/scan", json={"folder": "/nowhere"}, headers=headers)
    assert (read.status_code != 403, written.status_code != 403, administered.status_code != 403) == (
        reads, writes, administers,
    )  # fmt: skip
    if not writes:
        assert written.json()["error"]["details"] == {"scope": scope, "needed": "write"}


@pytest.mark.parametrize("change", [
    lambda secret: secret[:-1],
    lambda secret: secret + "x",
    lambda secret: secret.replace("hmg_", "hmx_"),
    lambda secret: "hmg_" + "0" * 12 + "_" + secret.split("_", 2)[2],
    lambda secret: "",
    lambda secret: "hmg__",
])  # fmt: skip
def test_what_is_not_exactly_a_token_is_none(served: TestClient, tokens: Tokens, change: object) -> None:
    secret = tokens.create("owner", "admin").secret
    assert callable(change)
    assert served.get("/memory", headers=bearer(change(secret))).status_code == 401


def test_a_token_that_is_no_ascii_is_none(served: TestClient, tokens: Tokens) -> None:
    tokens.create("owner", "admin")
    headers = [(b"authorization", "Bearer hmg_令牌_令牌".encode())]
    assert served.get("/memory", headers=headers).status_code == 401


def test_only_hashes_are_kept_in_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "homing.db"
    with homing.open(tmp_path, settings=Settings()) as app:
        made = Tokens(app.database).create("owner", "read", "my laptop")
    assert made.secret not in repr(made)
    secret = made.secret.split("_", 2)[2].encode()
    assert secret not in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(file) as connection:
        assert len(connection.execute("SELECT hash FROM tokens").fetchone()[0]) == 32
    connection.close()


def test_tokens_are_listed_and_revoked(database: Database) -> None:
    tokens = Tokens(database)
    first, second = tokens.create("lin", "read"), tokens.create("王", "write")
    assert [one.user for one in tokens.all()] == ["lin", "王"]
    assert tokens.check(second.secret).scope == "write"
    tokens.revoke(first.token.id)
    with pytest.raises(Unauthorized):
        tokens.check(first.secret)
    with pytest.raises(NotFound, match="homing tokens list"):
        tokens.revoke(first.token.id)


def test_what_another_process_creates_or_revokes_counts_at_once(open_database: Callable[[], Database]) -> None:
    here, elsewhere = Tokens(open_database()), Tokens(open_database())
    assert here.all() == []
    made = elsewhere.create("lin", "write", "phone")
    assert here.check(made.secret) == made.token
    assert here.revoke(made.token.id) == made.token
    with pytest.raises(Unauthorized):
        elsewhere.check(made.secret)


def test_looking_for_tokens_makes_no_file_and_no_table(tmp_path: Path, database: Database) -> None:
    with homing.open(tmp_path / "empty", settings=Settings()) as app:
        assert not Tokens.exist(app.existing_database)
    assert not (tmp_path / "empty").exists()
    assert not Tokens.exist(database)
    assert database.applied("tokens") == 0
    made = Tokens(database).create("owner", "read")
    assert Tokens.exist(database)
    Tokens(database).revoke(made.token.id)
    assert not Tokens.exist(database)


@pytest.mark.parametrize("user", ["", "  ", "a\nb", "x" * 201])
def test_a_user_is_one_line(database: Database, user: str) -> None:
    with pytest.raises(InvalidArgument, match="one line"):
        Tokens(database).create(user, "read")
