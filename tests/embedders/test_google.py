"""Gemini's wire format."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from homing.embedders.google import GoogleProvider
from homing.errors import InvalidKey, RateLimited
from homing.testing.loopback import Fault, LoopbackApi


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi(key="AIza-test") as api:
        yield api


@pytest.fixture
def provider(api: LoopbackApi) -> Iterator[GoogleProvider]:
    provider = GoogleProvider("gemini-embedding-001", api_key="AIza-test", base_url=api.url + "/v1beta", dimensions=768)
    yield provider
    provider.close()


def test_one_text_is_embed_content(provider: GoogleProvider, api: LoopbackApi) -> None:
    provider.embed(["打开灯"])
    assert api.requests[0].path == "/v1beta/models/gemini-embedding-001:embedContent"
    assert api.requests[0].headers["x-goog-api-key"] == "AIza-test"
    assert api.requests[0].body == {
        "model": "models/gemini-embedding-001",
        "content": {"parts": [{"text": "打开灯"}]},
        "taskType": "RETRIEVAL_DOCUMENT",
        "outputDimensionality": 768,
    }


def test_several_texts_are_one_batch(provider: GoogleProvider, api: LoopbackApi) -> None:
    provider.embed([f"{n}" for n in range(100)])
    assert [request.path for request in api.requests] == ["/v1beta/models/gemini-embedding-001:batchEmbedContents"]
    assert len(api.requests[0].body["requests"]) == 100
    assert {request["outputDimensionality"] for request in api.requests[0].body["requests"]} == {768}


def test_queries_are_told_from_documents(provider: GoogleProvider, api: LoopbackApi) -> None:
    provider.embed(["a"], kind="query")
    provider.embed(["a", "b"], kind="query")
    assert api.requests[0].body["taskType"] == "RETRIEVAL_QUERY"
    assert api.requests[1].body["requests"][1]["taskType"] == "RETRIEVAL_QUERY"


def test_the_models_own_width_is_sent_where_none_is_configured(api: LoopbackApi) -> None:
    provider = GoogleProvider(api_key="AIza-test", base_url=api.url + "/v1beta")
    assert provider.embed(["a"]).shape == (1, 3072)
    assert api.requests[0].body["outputDimensionality"] == 3072
    provider.close()


def test_the_models_prefix_is_understood(api: LoopbackApi) -> None:
    provider = GoogleProvider("models/gemini-embedding-001", api_key="AIza-test", base_url=api.url + "/v1beta")
    assert provider.id == "google/gemini-embedding-001@3072"
    provider.embed(["a"])
    assert "models/models" not in api.requests[0].path
    provider.close()


def test_a_model_name_cannot_change_the_path(api: LoopbackApi) -> None:
    provider = GoogleProvider("../../files?x=", api_key="AIza-test", base_url=api.url + "/v1beta", dimensions=64)
    with pytest.raises(Exception, match="404"):
        provider.embed(["a"])
    assert api.requests[0].path.startswith("/v1beta/models/")
    provider.close()


def test_the_400_of_a_wrong_key_is_invalid_key(api: LoopbackApi) -> None:
    provider = GoogleProvider(api_key="AIza-wrong", base_url=api.url + "/v1beta")
    with pytest.raises(InvalidKey, match=r"\(400\).*API key not valid"):
        provider.embed(["a"])
    provider.close()


def test_the_delay_in_the_body_of_a_429_is_respected(provider: GoogleProvider, api: LoopbackApi) -> None:
    body = (
        '{"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": ['
        '{"@type": "type.googleapis.com/google.rpc.Help"},'
        '{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]}}'
    )
    api.faults = [Fault(status=429, body=body)]
    with pytest.raises(RateLimited) as caught:
        provider.embed(["a"])
    assert caught.value.retry_after == 34.5
