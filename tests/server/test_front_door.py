"""Before there is a request: headers without end, callers that never finish, made-up addresses, certificates."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import homing
from homing.app import Homing
from homing.config import ServerSettings, Settings
from homing.errors import ConfigError, Unauthorized
from homing.server.application import create_app
from homing.server.front_door import front_door
from homing.server.running import configured
from homing.server.tokens import Tokens
from tests.server.live import live


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homing]:
    with homing.open(tmp_path_factory.mktemp("door") / "data", settings=Settings()) as app:
        yield app


@contextmanager
def serving(app: Homing, **settings: Any) -> Iterator[tuple[str, int]]:
    given = ServerSettings(**settings)
    app.settings = app.settings.model_copy(update={"server": given})
    served = create_app(app)
    with live(served, configured(served, given)) as address:
        url = httpx2.URL(address)
        yield url.host, url.port or 0


def send(place: tuple[str, int], content: bytes) -> tuple[int, dict[str, Any]]:
    """The status and the error that raw bytes are answered with."""
    with socket.create_connection(place) as wire:
        wire.sendall(content)
        return answer_of(wire)


def answer_of(wire: socket.socket) -> tuple[int, dict[str, Any]]:
    received = b""
    while piece := wire.recv(65536):
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body).get("error", {}) if body else {}


def health(place: tuple[str, int]) -> int:
    return httpx2.get(f"http://{place[0]}:{place[1]}/health").status_code


HEAD = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        HEAD + b"a: " + b"x" * 40_000 + b"\r\n\r\n",
        HEAD + b"a: " + b"x" * 200_000,
        b"GET /" + b"x" * 200_000,
        HEAD + b"a: b\r\n" * 200 + b"\r\n",
    ],
)
def test_headers_that_are_too_long_or_too_many_are_refused(app: Homing, request_: bytes) -> None:
    with serving(app) as place:
        status, error = send(place, request_)
        assert (status, error["code"]) == (431, "HEADERS_TOO_LARGE")
        assert "请求头" in error["notice"]["zh"]
        assert health(place) == 200


def test_headers_and_bodies_that_do_not_come_are_given_up(app: Homing) -> None:
    with serving(app, header_timeout=0.2, body_timeout=0.2) as place:
        status, error = send(place, b"GET /health HTTP/1.1\r\nhost: 127")
        assert (status, error["code"]) == (408, "REQUEST_TIMEOUT")
        with socket.create_connection(place) as silent:
            assert silent.recv(100) == b""
        body = b"POST /search HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 99\r\nconnection: close\r\n\r\n{"
        status, error = send(place, body)
        assert (status, error["code"]) == (408, "REQUEST_TIMEOUT")
        assert "时间" in error["notice"]["zh"]


def test_one_address_has_so_many_connections(app: Homing) -> None:
    with serving(app, connections_per_address=3) as place, ExitStack() as held:
        for _ in range(3):
            wire = held.enter_context(socket.create_connection(place))
            wire.sendall(HEAD.replace(b"close", b"keep-alive") + b"\r\n")
            assert wire.recv(65536).startswith(b"HTTP/1.1 200")
        with socket.create_connection(place) as wire:
            status, error = answer_of(wire)
        assert (status, error["code"]) == (503, "OVERLOADED")


def test_half_open_connections_make_room_for_who_asks(app: Homing) -> None:
    with serving(app, connections=4) as place, ExitStack() as held:
        half = [held.enter_context(socket.create_connection(place)) for _ in range(40)]
        for one in half[-4:]:
            one.sendall(b"GET /hea")
        assert health(place) == 200
        assert health(place) == 200


@pytest.mark.slow
def test_an_address_that_a_caller_makes_up_does_not_pass_the_rate_limit(app: Homing) -> None:
    made_up = [{"x-forwarded-for": f"10.0.0.{n}"} for n in range(4)]

    def statuses(place: tuple[str, int]) -> list[int]:
        url = f"http://{place[0]}:{place[1]}/memory"
        return [httpx2.get(url, headers=one).status_code for one in made_up]

    with serving(app, rate=0.001, burst=2) as place:
        assert statuses(place) == [200, 200, 429, 429]
    with serving(app, rate=0.001, burst=2, trusted_proxies=("127.0.0.0/8",)) as place:
        assert statuses(place) == [200] * 4


def test_what_is_no_address_of_a_proxy_is_refused() -> None:
    with pytest.raises(ConfigError, match="trusted_proxies"):
        front_door(ServerSettings(trusted_proxies=("proxy.example",)))


def certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    kind = serialization.PrivateFormat.PKCS8
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, kind, plain))
    return cert_file, key_file


def test_a_certificate_makes_it_https(app: Homing, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with serving(app, cert=str(cert), key=str(key)) as place:
        trusting = ssl.create_default_context(cafile=str(cert))
        assert httpx2.get(f"https://localhost:{place[1]}/health", verify=trusting).status_code == 200


def test_a_certificate_that_is_none_is_refused_with_what_to_do(app: Homing, tmp_path: Path) -> None:
    cert, _ = certificate(tmp_path)
    with pytest.raises(ConfigError, match="--cert and --key"):
        configured(create_app(app), ServerSettings(cert=str(cert)))
    with pytest.raises(ConfigError, match="PEM"):
        configured(create_app(app), ServerSettings(cert=str(cert), key=str(cert)))
    with pytest.raises(ConfigError, match="PEM"):
        configured(create_app(app), ServerSettings(cert=str(cert), key="nowhere.pem"))


def test_a_token_expires_by_the_clock_and_is_renewed(tmp_path: Path) -> None:
    with homing.open(tmp_path / "data", settings=Settings()) as app:
        now = [0.0]
        tokens = Tokens(app.database, clock=lambda: now[0])
        made, forever = tokens.create("lin", "read", seconds=3600), tokens.create("lin", "read")
        assert made.token.expires is not None
        now[0] = made.token.expires - 1
        assert tokens.check(made.secret).user == "lin"
        now[0] = made.token.expires
        with pytest.raises(Unauthorized, match=f"expired; renew it with `homing tokens rotate {made.token.id}`"):
            tokens.check(made.secret)
        assert tokens.check(forever.secret).expires is None
        renewed = tokens.rotate(made.token.id)
        assert (renewed.token.id, renewed.token.user) == (made.token.id, "lin")
        assert renewed.token.expires is not None
        now[0] = renewed.token.created
        assert tokens.check(renewed.secret)
        with pytest.raises(Unauthorized):
            tokens.check(made.secret)
        assert renewed.token.expires - renewed.token.created == pytest.approx(3600)
