"""What every remote provider does, each against a server that speaks its wire format."""

from __future__ import annotations

import logging
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest

from homing.embedders.breaker import Breaker
from homing.embedders.dashscope import DashScopeProvider
from homing.embedders.google import GoogleProvider
from homing.embedders.ollama import OllamaProvider
from homing.embedders.openai import OpenAIProvider
from homing.embedders.remote import RemoteProvider
from homing.embedders.resilient import Resilient
from homing.errors import (
    DimensionMismatch,
    EmbeddingError,
    InvalidArgument,
    InvalidKey,
    MalformedAnswer,
    ModelUnknown,
    ProviderUnavailable,
    RateLimited,
    TextTooLong,
    Timeout,
)
from homing.testing.fake import FakeEmbedder
from homing.testing.loopback import Fault, LoopbackApi
from homing.testing.provider_contract import ProviderContract

KEY = "sk-loopback-0123456789-SECRET"


@dataclass(frozen=True)
class Remote:
    """One of the four, as a test sees it."""

    kind: type[RemoteProvider]
    model: str
    base: str
    most_texts: int

    def at(self, url: str, **options: Any) -> RemoteProvider:
        build: Callable[..., RemoteProvider] = self.kind
        return build(**{"model": self.model, "api_key": KEY, "base_url": url + self.base, "dimensions": 64} | options)


REMOTES = {
    "openai": Remote(OpenAIProvider, "text-embedding-3-small", "/v1", 2048),
    "google": Remote(GoogleProvider, "gemini-embedding-001", "/v1beta", 100),
    "ollama": Remote(OllamaProvider, "nomic-embed-text", "", 64),
    "dashscope": Remote(DashScopeProvider, "text-embedding-v4", "/api/v1", 10),
}


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi(key=KEY) as api:
        yield api


@pytest.fixture(params=REMOTES)
def remote(request: pytest.FixtureRequest) -> Remote:
    return REMOTES[request.param]


@pytest.fixture
def provider(remote: Remote, api: LoopbackApi) -> Iterator[RemoteProvider]:
    provider = remote.at(api.url)
    yield provider
    provider.close()


class TestRemoteContract(ProviderContract):
    @pytest.fixture
    def provider(self, remote: Remote, api: LoopbackApi) -> Iterator[RemoteProvider]:
        provider = remote.at(api.url)
        yield provider
        provider.close()


def test_vectors_are_those_of_the_server(provider: RemoteProvider) -> None:
    texts = ["打开灯", "commit the code", "混合 mixed text"]
    np.testing.assert_allclose(provider.embed(texts), FakeEmbedder().embed(texts), atol=1e-6)


def test_identity_is_provider_model_and_width(provider: RemoteProvider, remote: Remote) -> None:
    name = next(name for name, known in REMOTES.items() if known is remote)
    assert provider.id == f"{name}/{remote.model}@64"


def test_many_texts_are_split_by_count_and_keep_their_order(
    provider: RemoteProvider, remote: Remote, api: LoopbackApi
) -> None:
    count = 2 * remote.most_texts + 1
    texts = [f"第{n}段 paragraph {n}" for n in range(count)]
    np.testing.assert_allclose(provider.embed(texts), FakeEmbedder().embed(texts), atol=1e-6)
    assert len(api.requests) == 3


def test_no_more_requests_run_at_once_than_allowed(provider: RemoteProvider, remote: Remote, api: LoopbackApi) -> None:
    api.always = Fault(delay=0.1)
    most = 1 if remote.kind is OllamaProvider else 4
    provider.embed(
        [f"text {n}" for n in range(7 * remote.most_texts)] if remote.most_texts < 200 else ["文" * 5000] * 190
    )
    assert api.most_at_once == most


def test_large_texts_are_split_by_size(provider: RemoteProvider, api: LoopbackApi) -> None:
    texts = [f"{n} " + "很长" * 2_700 for n in range(36)]
    np.testing.assert_allclose(provider.embed(texts), FakeEmbedder().embed(texts), atol=1e-6)
    sizes = [len(str(request.body)) for request in api.requests]
    assert len(sizes) > 1
    assert max(sizes) < 1_000_000


def test_no_texts_need_no_request(provider: RemoteProvider, api: LoopbackApi) -> None:
    provider.embed([])
    assert not api.requests


@pytest.mark.parametrize("ending", ["", "/", "//"])
def test_the_base_url_may_end_in_a_slash(remote: Remote, api: LoopbackApi, ending: str) -> None:
    provider = remote.at(api.url, base_url=f" {api.url}{remote.base}{ending}\n")
    assert provider.embed(["a"]).shape == (1, 64)
    assert "//" not in api.requests[0].path
    provider.close()


@pytest.mark.parametrize(
    "base_url", ["", "localhost:11434", "ftp://host/v1", "https://", "http://host/v1?key=abc", "http://host:port"]
)
def test_a_base_url_that_is_none_is_refused(remote: Remote, base_url: str) -> None:
    with pytest.raises(InvalidArgument, match="base_url"):
        remote.at("", base_url=base_url)


def test_an_unknown_model_without_dimensions_is_refused(remote: Remote) -> None:
    with pytest.raises(InvalidArgument, match="pass dimensions"):
        remote.at("http://localhost", model="somebody-elses-model", dimensions=None)


@pytest.mark.parametrize("options", [{"dimensions": 0}, {"timeout": 0}, {"model": " "}, {"proxy": "nonsense"}])
def test_nonsense_is_refused(remote: Remote, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        remote.at("http://localhost", **options)


# What goes wrong, and what it is called.


def test_a_wrong_key_is_invalid_key(remote: Remote, api: LoopbackApi) -> None:
    provider = remote.at(api.url, api_key="sk-wrong")
    with pytest.raises(InvalidKey, match="rejected the API key"):
        provider.embed(["a"])
    provider.close()


@pytest.mark.parametrize("status", [401, 403])
def test_401_and_403_are_invalid_key(provider: RemoteProvider, api: LoopbackApi, status: int) -> None:
    api.faults = [Fault(status=status)]
    with pytest.raises(InvalidKey):
        provider.embed(["a"])


def test_an_unknown_model_is_model_unknown(remote: Remote, api: LoopbackApi) -> None:
    provider = remote.at(api.url, model="no-such-model")
    with pytest.raises(ModelUnknown, match="check model and base_url"):
        provider.embed(["a"])
    provider.close()


def test_an_address_where_nothing_lives_is_model_unknown(remote: Remote, api: LoopbackApi) -> None:
    provider = remote.at(api.url, base_url=api.url + "/somewhere/else")
    with pytest.raises(ModelUnknown, match="base_url"):
        provider.embed(["a"])
    provider.close()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "999999"}, 3600),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_429_is_rate_limited_and_says_when_to_come_back(
    provider: RemoteProvider, api: LoopbackApi, headers: dict[str, str], seconds: float | None
) -> None:
    api.faults = [Fault(status=429, headers=headers)]
    with pytest.raises(RateLimited) as caught:
        provider.embed(["a"])
    assert caught.value.retry_after == seconds


def test_retry_after_may_be_a_date(provider: RemoteProvider, api: LoopbackApi) -> None:
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    api.faults = [Fault(status=429, headers={"Retry-After": then})]
    with pytest.raises(RateLimited) as caught:
        provider.embed(["a"])
    assert caught.value.retry_after == pytest.approx(40, abs=3)


@pytest.mark.parametrize("status", [500, 502, 503, 529])
def test_5xx_is_unavailable(provider: RemoteProvider, api: LoopbackApi, status: int) -> None:
    api.faults = [Fault(status=status, headers={"retry-after": "2"})]
    with pytest.raises(ProviderUnavailable) as caught:
        provider.embed(["a"])
    assert caught.value.retry_after == 2


def test_413_and_a_400_about_length_are_text_too_long(provider: RemoteProvider, api: LoopbackApi) -> None:
    for message in (
        "This model's maximum context length is 8192 tokens, however you requested 8610 tokens",
        "the input length exceeds the context length",
        "Range of input length should be [1, 8192]",
        "Requested 309209 tokens, max 300000 tokens per request max_tokens_per_request",
    ):
        api.faults = [Fault(status=400, body=f'{{"error": {{"message": "{message}"}}}}'), Fault(status=413)]
        for _ in range(2):
            with pytest.raises(TextTooLong):
                provider.embed(["a"])


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(status=400), EmbeddingError),
        (Fault(status=418, body="I am a teapot"), EmbeddingError),
        (Fault(status=301, headers={"location": "http://elsewhere/"}), EmbeddingError),
        (Fault(status=408), Timeout),
        (Fault(status=500, body="<html><body>Bad gateway</body></html>"), ProviderUnavailable),
        (Fault(hang_up=True), ProviderUnavailable),
        (Fault(half=True), MalformedAnswer),
        (Fault(text=lambda text: text[: len(text) // 2]), MalformedAnswer),
        (Fault(text=lambda text: "<html>a login page</html>"), MalformedAnswer),
        (Fault(text=lambda text: ""), MalformedAnswer),
        (Fault(text=lambda text: "null"), MalformedAnswer),
        (Fault(text=lambda text: "[]"), MalformedAnswer),
        (Fault(text=lambda text: '{"error": "but with status 200"}'), MalformedAnswer),
        (Fault(rows=lambda rows: rows[:-1]), MalformedAnswer),
        (Fault(rows=lambda rows: rows + rows[:1]), MalformedAnswer),
        (Fault(rows=lambda rows: [row[:-1] for row in rows]), DimensionMismatch),
        (Fault(rows=lambda rows: [rows[0], rows[1][:-1]]), DimensionMismatch),
        (Fault(rows=lambda rows: [[float("nan"), *row[1:]] for row in rows]), MalformedAnswer),
        (Fault(rows=lambda rows: [[float("inf"), *row[1:]] for row in rows]), MalformedAnswer),
        (Fault(rows=lambda rows: [[1e308] * len(row) for row in rows]), MalformedAnswer),
        (Fault(rows=lambda rows: [[0.0] * len(row) for row in rows]), MalformedAnswer),
        (Fault(text=lambda text: text.replace("0.", '"x",0.', 1)), MalformedAnswer),
        (Fault(text=lambda text: text.replace("[0.", "[null,0.", 1).replace("[-0.", "[null,-0.", 1)), EmbeddingError),
    ],
)
def test_every_wrong_answer_has_its_error(
    provider: RemoteProvider, api: LoopbackApi, fault: Fault, error: type[Exception], remote: Remote
) -> None:
    api.faults = [fault]
    with pytest.raises((error, DimensionMismatch) if fault.text else error) as caught:
        provider.embed(["打开灯", "commit"])
    assert remote.model in str(caught.value) or api.url in str(caught.value)
    assert provider.embed(["打开灯", "commit"]).shape == (2, 64)


def test_a_server_that_is_not_there_is_unavailable(remote: Remote) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        provider = remote.at(f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(ProviderUnavailable, match="cannot be reached"):
            provider.embed(["a"])
        provider.close()


def test_a_slow_server_is_given_up_after_the_timeout(remote: Remote, api: LoopbackApi) -> None:
    api.faults = [Fault(delay=2)]
    provider, start = remote.at(api.url, timeout=0.2), time.monotonic()
    with pytest.raises(Timeout):
        provider.embed(["a"])
    assert time.monotonic() - start < 1.5
    provider.close()


def test_an_answer_that_only_drips_in_is_given_up_after_the_timeout(remote: Remote, api: LoopbackApi) -> None:
    api.faults = [Fault(drip=0.02)]
    provider, start = remote.at(api.url, timeout=0.3), time.monotonic()
    with pytest.raises(Timeout):
        provider.embed(["a"])
    assert time.monotonic() - start < 1.5
    provider.close()


def test_one_failing_request_fails_the_call_and_the_rest_is_not_sent(
    provider: RemoteProvider, remote: Remote, api: LoopbackApi
) -> None:
    api.faults = [Fault(status=500)] + [Fault(delay=0.2)] * 8
    texts = [f"text {n}" for n in range(12 * remote.most_texts)] if remote.most_texts < 200 else ["文" * 5000] * 450
    with pytest.raises(ProviderUnavailable):
        provider.embed(texts)
    assert len(api.requests) < 12


# With the wrapper that the settings put around every remote provider.


def test_500_then_success_is_success(provider: RemoteProvider, api: LoopbackApi) -> None:
    api.faults = [Fault(status=500)]
    assert Resilient(provider, deadline=5).embed(["灯"], kind="query").shape == (1, 64)
    assert len(api.requests) == 2


def test_429_is_tried_again_when_the_server_said(provider: RemoteProvider, api: LoopbackApi) -> None:
    api.faults = [Fault(status=429, headers={"retry-after": "0.3"})]
    start = time.monotonic()
    assert Resilient(provider, deadline=5).embed(["灯"], kind="query").shape == (1, 64)
    assert time.monotonic() - start >= 0.3


def test_a_dead_server_costs_a_deadline_once_and_comes_back_by_itself(remote: Remote, api: LoopbackApi) -> None:
    provider = remote.at(api.url)
    resilient = Resilient(provider, breaker=Breaker(cool_down=0.3))
    api.always = Fault(delay=0.9)
    start = time.monotonic()
    with pytest.raises(Timeout):
        resilient.embed(["a"], kind="query")
    assert time.monotonic() - start < 1
    for _ in range(5):
        with pytest.raises(ProviderUnavailable, match="left alone"):
            resilient.embed(["a"], kind="query")
    assert len(api.requests) == 1
    api.always = None
    time.sleep(0.35)
    assert resilient.embed(["a"], kind="query").shape == (1, 64)
    for thread in threading.enumerate():
        if thread.name == f"embed {provider.id}":
            thread.join()
    resilient.close()


# Keys.


def _everything_said(error: BaseException | None) -> str:
    said = []
    while error is not None:
        said += [
            str(error),
            repr(error),
            "".join(traceback.format_exception(error)),
            str(getattr(error, "details", "")),
        ]
        said += [str(vars(error))]
        error = error.__cause__ or error.__context__
    return "\n".join(said)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=401, body=f'{{"error": {{"message": "Incorrect API key provided: {KEY}"}}}}'),
        Fault(status=400, body=f"the key {KEY} is bad"),
        Fault(status=404, body=f'{{"error": "{KEY}"}}'),
        Fault(status=500, body=f'{{"code": "{KEY}", "message": "Bearer {KEY}"}}'),
        Fault(status=429, body=KEY),
        Fault(text=lambda _: f"garbage {KEY}"),
        Fault(text=lambda _: f'{{"data": "{KEY}", "embeddings": "{KEY}", "output": "{KEY}"}}'),
        Fault(hang_up=True),
        Fault(half=True),
        Fault(delay=0.6),
        Fault(rows=lambda rows: []),
    ],
)
def test_the_key_is_never_said(
    remote: Remote,
    api: LoopbackApi,
    fault: Fault,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    provider = remote.at(api.url, timeout=0.3)
    api.faults = [fault]
    with pytest.raises(EmbeddingError) as caught:
        Resilient(provider, attempts=1, deadline=5).embed(["a"], kind="query")
    provider.embed(["a"])
    captured = capfd.readouterr()
    records = "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records)
    assert caplog.records
    for said in (
        _everything_said(caught.value),
        records,
        captured.out,
        captured.err,
        repr(provider),
        str(vars(provider)),
    ):
        assert KEY not in said
        assert KEY[3:] not in said
    provider.close()


def test_the_key_is_in_the_header_and_not_in_the_address(provider: RemoteProvider, api: LoopbackApi) -> None:
    provider.embed(["a"])
    assert KEY not in api.requests[0].path
    assert KEY in str(api.requests[0].headers)


@pytest.mark.parametrize("key", ["sk-line\nbreak", "sk-ＦＵＬＬ", "sk-\x00nul"])
def test_a_key_that_no_header_can_hold_is_refused_without_being_quoted(remote: Remote, key: str) -> None:
    with pytest.raises(InvalidKey) as caught:
        remote.at("http://localhost", api_key=key)
    assert key not in _everything_said(caught.value)


def test_white_space_around_a_copied_key_is_dropped(remote: Remote, api: LoopbackApi) -> None:
    provider = remote.at(api.url, api_key=f"  {KEY}\n")
    assert provider.embed(["a"]).shape == (1, 64)
    provider.close()


def test_without_a_key_no_key_is_sent(remote: Remote) -> None:
    with LoopbackApi() as api:
        provider = remote.at(api.url, api_key="")
        provider.embed(["a"])
        assert not {"authorization", "x-goog-api-key"} & set(api.requests[0].headers)
        provider.close()


def test_a_password_in_the_base_url_is_used_and_never_said(api: LoopbackApi, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    api.key = ""
    provider = OllamaProvider(base_url=api.url.replace("://", "://user:pass-word@"), dimensions=64)
    provider.embed(["a"])
    assert api.requests[0].headers["authorization"] == "Basic dXNlcjpwYXNzLXdvcmQ="
    api.faults = [Fault(status=500, body="user:pass-word")]
    with pytest.raises(ProviderUnavailable) as caught:
        provider.embed(["a"])
    assert "pass-word" not in _everything_said(caught.value) + caplog.text + repr(provider)
    provider.close()


# The way there.


def test_a_proxy_is_used(remote: Remote, api: LoopbackApi) -> None:
    provider = remote.at("http://api.invalid", proxy=api.url)
    assert provider.embed(["a"]).shape == (1, 64)
    assert api.requests[0].headers["host"] == "api.invalid"
    provider.close()


def test_the_environment_is_not_read(remote: Remote, api: LoopbackApi, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    provider = remote.at(api.url)
    assert provider.embed(["a"]).shape == (1, 64)
    provider.close()


def test_closing_while_others_embed_takes_nothing_from_them(provider: RemoteProvider, api: LoopbackApi) -> None:
    api.always = Fault(delay=0.01)
    outcomes = []

    def embed() -> None:
        for _ in range(20):
            outcomes.append(provider.embed(["a"]).shape)

    threads = [threading.Thread(target=embed) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        provider.close()
        time.sleep(0.005)
    assert outcomes == [(1, 64)] * 80


def test_connections_are_kept_between_calls_and_closed_at_the_end(provider: RemoteProvider, api: LoopbackApi) -> None:
    for _ in range(3):
        provider.embed(["a"])
    provider.close()
    assert provider.embed(["a"]).shape == (1, 64)
