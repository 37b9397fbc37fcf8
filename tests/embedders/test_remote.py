"""What every remote provider does, each against a server that speaks its wire format."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from homing.embedders.ollama import OllamaProvider
from homing.embedders.remote import RemoteProvider
from homing.errors import (
    InvalidArgument,
)
from homing.testing.fake import FakeEmbedder
from homing.testing.loopback import Fault, LoopbackApi
from homing.testing.provider_contract import ProviderContract
from tests.embedders.remotes import REMOTES, Remote


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
    most = 1 if remote.kind is OllamaProvider else 4
    together = threading.Event()

    def meet(answer: str) -> str:
        """Nobody is answered before as many as may are there."""
        if api.most_at_once >= most:
            together.set()
        assert together.wait(600)
        return answer

    api.always = Fault(text=meet)
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
