"""Keys reach the provider, and nobody else."""

from __future__ import annotations

import logging
import traceback

import pytest

from homing.embedders.ollama import OllamaProvider
from homing.embedders.remote import RemoteProvider
from homing.embedders.resilient import Resilient
from homing.errors import (
    EmbeddingError,
    InvalidKey,
    ProviderUnavailable,
)
from homing.testing.loopback import Fault, LoopbackApi
from tests.embedders.remotes import KEY, Remote


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
        Fault(delay=60),
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
        Resilient(provider, attempts=1, deadline=60).embed(["a"], kind="query")
    patient = remote.at(api.url)
    patient.embed(["a"])
    patient.close()
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
