"""What goes wrong with a remote provider, what it is called, and what it costs behind the resilient wrapper."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from homing.embedders.remote import RemoteProvider
from homing.embedders.resilient import Breaker, Resilient
from homing.errors import (
    DimensionMismatch,
    EmbeddingError,
    InvalidKey,
    MalformedAnswer,
    ModelUnknown,
    ProviderUnavailable,
    RateLimited,
    TextTooLong,
    Timeout,
)
from homing.testing.loopback import Fault, LoopbackApi
from tests.embedders.remotes import Remote


def held_until(over: threading.Event, arrived: threading.Event | None = None) -> Fault:
    """An answer that is not sent before that, and what is set when it was asked for."""

    def hold_back(answer: str) -> str:
        if arrived is not None:
            arrived.set()
        return answer if over.wait(600) else ""

    return Fault(text=hold_back)


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
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=1_000), usegmt=True)
    api.faults = [Fault(status=429, headers={"Retry-After": then})]
    with pytest.raises(RateLimited) as caught:
        provider.embed(["a"])
    assert caught.value.retry_after == pytest.approx(1_000, abs=120)


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
    over = threading.Event()
    api.faults = [held_until(over)]
    provider = remote.at(api.url, timeout=0.2)
    with pytest.raises(Timeout):
        provider.embed(["a"])
    over.set()
    provider.close()


def test_an_answer_that_only_drips_in_is_given_up_after_the_timeout(remote: Remote, api: LoopbackApi) -> None:
    # At this pace, the whole of it would take minutes.
    api.faults = [Fault(drip=0.1)]
    provider = remote.at(api.url, timeout=0.5)
    with pytest.raises(Timeout):
        provider.embed(["a"])
    provider.close()


def test_one_failing_request_fails_the_call_and_the_rest_is_not_sent(
    provider: RemoteProvider, api: LoopbackApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(provider), "api", replace(provider.api, texts=1, requests=2))
    # The first one answers, so that it is not the first request of the call that fails.
    api.faults, api.always = [Fault()], Fault(status=500)
    with pytest.raises(ProviderUnavailable):
        provider.embed([f"text {n}" for n in range(400)])
    assert 2 <= len(api.requests) < 400


def test_500_then_success_is_success(provider: RemoteProvider, api: LoopbackApi) -> None:
    api.faults = [Fault(status=500)]
    assert Resilient(provider, deadline=120).embed(["灯"], kind="query").shape == (1, 64)
    assert len(api.requests) == 2


def test_429_is_tried_again_when_the_server_said(provider: RemoteProvider, api: LoopbackApi) -> None:
    api.faults = [Fault(status=429, headers={"retry-after": "0.3"})]
    start = time.monotonic()
    assert Resilient(provider, deadline=120).embed(["灯"], kind="query").shape == (1, 64)
    assert time.monotonic() - start >= 0.3


def test_a_dead_server_costs_a_deadline_once_and_comes_back_by_itself(remote: Remote, api: LoopbackApi) -> None:
    provider = remote.at(api.url)
    now = [0.0]
    resilient = Resilient(provider, deadline=0.2, breaker=Breaker(cool_down=5, clock=lambda: now[0]))
    arrived, over = threading.Event(), threading.Event()
    api.always = held_until(over, arrived)
    with pytest.raises(Timeout):
        resilient.embed(["a"], kind="query")
    assert arrived.wait(600)
    for _ in range(5):
        with pytest.raises(ProviderUnavailable, match="left alone"):
            resilient.embed(["a"], kind="query")
    assert len(api.requests) == 1
    api.always = None
    over.set()
    now[0] += 5
    assert resilient.embed(["a"], kind="document").shape == (1, 64)
    for thread in threading.enumerate():
        if thread.name == f"embed {provider.id}":
            thread.join()
    resilient.close()
