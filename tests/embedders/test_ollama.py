"""Ollama's wire format."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from homing.embedders.ollama import OllamaProvider
from homing.errors import DimensionMismatch, InvalidArgument, ModelUnknown
from homing.testing.loopback import Fault, LoopbackApi


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi() as api:
        yield api


def test_one_text_is_sent_as_a_string(api: LoopbackApi) -> None:
    provider = OllamaProvider(base_url=api.url)
    assert provider.embed(["代码分析工具"]).shape == (1, 768)
    assert api.requests[0].body == {
        "model": "nomic-embed-text",
        "input": "代码分析工具",
        "truncate": True,
        "options": {"truncate": True},
        "dimensions": 768,
        "keep_alive": "30m",
    }
    provider.close()


def test_several_texts_are_sent_as_a_list(api: LoopbackApi) -> None:
    provider = OllamaProvider(base_url=api.url)
    provider.embed(["一", "two"])
    assert api.requests[0].body["input"] == ["一", "two"]
    provider.close()


def test_configured_dimensions_and_keep_alive_are_sent(api: LoopbackApi) -> None:
    provider = OllamaProvider(base_url=api.url, dimensions=256, keep_alive="-1")
    assert provider.embed(["a"]).shape == (1, 256)
    assert (api.requests[0].body["dimensions"], api.requests[0].body["keep_alive"]) == (256, "-1")
    provider.close()


def test_an_old_server_that_ignores_dimensions_is_noticed(api: LoopbackApi) -> None:
    provider = OllamaProvider(base_url=api.url, dimensions=256)
    api.faults = [Fault(rows=lambda rows: [row * 3 for row in rows])]
    with pytest.raises(DimensionMismatch, match="got vectors of 768 dimensions where 256 are configured"):
        provider.embed(["a"])
    provider.close()


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/api", "/api/"])
def test_the_address_of_either_of_its_apis_is_understood(api: LoopbackApi, path: str) -> None:
    provider = OllamaProvider(base_url=api.url + path)
    provider.embed(["a"])
    assert api.requests[0].path == "/api/embed"
    provider.close()


def test_a_model_that_is_not_there_names_the_command_that_brings_it(api: LoopbackApi) -> None:
    provider = OllamaProvider("bge-m3", base_url=api.url)
    with pytest.raises(ModelUnknown, match="try: ollama pull bge-m3"):
        provider.embed(["a"])
    provider.close()


def test_the_latest_tag_is_the_same_model() -> None:
    assert OllamaProvider("nomic-embed-text:latest").id == OllamaProvider("nomic-embed-text").id


def test_the_windows_of_small_models_are_known() -> None:
    assert OllamaProvider("all-minilm").truncated(["word " * 100, "word " * 200]) == [False, True]
    assert OllamaProvider("unheard-of", dimensions=8).truncated(["word " * 2000, "word " * 3000]) == [False, True]
    assert OllamaProvider("all-minilm", max_tokens=1000).truncated(["word " * 200]) == [False]


def test_a_host_without_a_scheme_is_refused_with_an_example() -> None:
    with pytest.raises(InvalidArgument, match="http://localhost:11434"):
        OllamaProvider(base_url="localhost:11434")
