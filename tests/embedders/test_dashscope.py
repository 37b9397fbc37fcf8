"""DashScope's wire format."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from homing.embedders.dashscope import DashScopeProvider
from homing.errors import InvalidKey, ModelUnknown
from homing.testing.loopback import LoopbackApi


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi(key="sk-dash") as api:
        yield api


@pytest.fixture
def provider(api: LoopbackApi) -> Iterator[DashScopeProvider]:
    provider = DashScopeProvider(api_key="sk-dash", base_url=api.url + "/api/v1")
    yield provider
    provider.close()


def test_texts_type_and_width_are_sent(provider: DashScopeProvider, api: LoopbackApi) -> None:
    assert provider.embed(["衣服的质量杠杠的", "很漂亮"]).shape == (2, 1024)
    assert api.requests[0].path == "/api/v1/services/embeddings/text-embedding/text-embedding"
    assert api.requests[0].headers["authorization"] == "Bearer sk-dash"
    assert api.requests[0].body == {
        "model": "text-embedding-v4",
        "input": {"texts": ["衣服的质量杠杠的", "很漂亮"]},
        "parameters": {"text_type": "document", "dimension": 1024},
    }


def test_queries_are_told_from_documents(provider: DashScopeProvider, api: LoopbackApi) -> None:
    provider.embed(["衣服"], kind="query")
    assert api.requests[0].body["parameters"]["text_type"] == "query"


def test_at_most_ten_texts_are_in_one_request(provider: DashScopeProvider, api: LoopbackApi) -> None:
    provider.embed([f"第{n}条" for n in range(35)])
    assert sorted(len(request.body["input"]["texts"]) for request in api.requests) == [5, 10, 10, 10]


def test_a_model_of_fixed_width_is_not_sent_a_dimension(api: LoopbackApi) -> None:
    provider = DashScopeProvider("text-embedding-v2", api_key="sk-dash", base_url=api.url + "/api/v1")
    assert provider.embed(["衣服"]).shape == (1, 1536)
    assert api.requests[0].body["parameters"] == {"text_type": "document"}
    provider.close()


def test_the_address_of_the_compatible_mode_is_understood(api: LoopbackApi) -> None:
    provider = DashScopeProvider(api_key="sk-dash", base_url=api.url + "/compatible-mode/v1/")
    assert provider.embed(["衣服"]).shape == (1, 1024)
    provider.close()


def test_a_wrong_key_and_an_unknown_model_are_told_apart(api: LoopbackApi) -> None:
    wrong = DashScopeProvider(api_key="sk-wrong", base_url=api.url + "/api/v1")
    with pytest.raises(InvalidKey, match="InvalidApiKey"):
        wrong.embed(["衣服"])
    unknown = DashScopeProvider("text-embedding-v9", api_key="sk-dash", base_url=api.url + "/api/v1", dimensions=64)
    with pytest.raises(ModelUnknown, match="Model not exist"):
        unknown.embed(["衣服"])
    wrong.close()
    unknown.close()
