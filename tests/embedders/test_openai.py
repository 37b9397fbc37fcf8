"""OpenAI's wire format, and what servers that only resemble it need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from homing.embedders.openai import OpenAIProvider
from homing.errors import DimensionMismatch, EmbeddingError, TextTooLong
from homing.testing.fake import FakeEmbedder
from homing.testing.loopback import Fault, LoopbackApi


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi(key="sk-test") as api:
        yield api


def at(api: LoopbackApi, **options: Any) -> OpenAIProvider:
    return OpenAIProvider(**{"api_key": "sk-test", "base_url": api.url + "/v1"} | options)


def test_without_dimensions_the_models_own_width_is_expected_and_nothing_is_sent(api: LoopbackApi) -> None:
    provider = at(api)
    assert provider.embed(["a"]).shape == (1, 1536)
    assert api.requests[0].body == {"input": ["a"], "model": "text-embedding-3-small", "encoding_format": "float"}
    provider.close()


def test_configured_dimensions_are_sent(api: LoopbackApi) -> None:
    provider = at(api, dimensions=256)
    provider.embed(["a"])
    assert api.requests[0].body["dimensions"] == 256
    provider.close()


def test_a_model_of_fixed_width_is_not_sent_dimensions(api: LoopbackApi) -> None:
    provider = at(api, model="text-embedding-ada-002", dimensions=1536)
    assert provider.embed(["a"]).shape == (1, 1536)
    assert "dimensions" not in api.requests[0].body
    provider.close()


def test_a_server_that_refuses_dimensions_is_served_without_and_still_checked(api: LoopbackApi) -> None:
    provider = at(api, model="all-minilm", dimensions=384, send_dimensions=False)
    assert provider.embed(["a"]).shape == (1, 384)
    assert "dimensions" not in api.requests[0].body
    wrong = at(api, model="all-minilm", dimensions=512, send_dimensions=False)
    with pytest.raises(DimensionMismatch) as caught:
        wrong.embed(["a"])
    assert caught.value.code == "EMBEDDING_DIMENSION_MISMATCH"
    assert caught.value.details == {"expected": 512, "actual": 384}
    provider.close()
    wrong.close()


def test_another_endpoint_below_the_base_url(api: LoopbackApi) -> None:
    for endpoint in ("v1/embeddings", "/v1/embeddings"):
        provider = at(api, base_url=api.url, endpoint=endpoint)
        assert provider.embed(["a"]).shape == (1, 1536)
        provider.close()


def test_rows_are_put_in_order_by_their_index(api: LoopbackApi) -> None:
    provider = at(api, dimensions=64)
    texts = [f"text {n}" for n in range(50)]
    assert (provider.embed(texts) @ FakeEmbedder().embed(texts).T).argmax(axis=1).tolist() == list(range(50))
    provider.close()


def test_a_long_text_is_cut_before_the_api_would_refuse_it(api: LoopbackApi) -> None:
    provider = at(api, dimensions=64)
    provider.embed(["很" * 100_000, "word " * 100_000, "short"])
    sent = api.requests[0].body["input"]
    assert len(sent[0]) == 5460
    assert len(sent[1]) == 24_573
    assert sent[2] == "short"
    provider.close()


def test_a_text_that_the_api_still_refuses_is_text_too_long(api: LoopbackApi) -> None:
    provider = at(api, dimensions=64, max_tokens=20_000)
    with pytest.raises(TextTooLong, match="embed shorter pieces"):
        provider.embed(["word " * 10_000])
    provider.close()


def test_a_refusal_of_another_kind_says_what_the_api_said(api: LoopbackApi) -> None:
    provider = at(api)
    api.faults = [Fault(status=400, body='{"error": {"message": "dimensions are not supported", "code": null}}')]
    with pytest.raises(EmbeddingError, match=r"refused the request \(400\): dimensions are not supported"):
        provider.embed(["a"])
    provider.close()


def test_any_server_that_speaks_the_format_is_served_without_a_key() -> None:
    with LoopbackApi() as api:
        provider = OpenAIProvider("all-minilm", base_url=api.url + "/v1", dimensions=384)
        assert provider.embed(["打开"]).shape == (1, 384)
        assert provider.id == "openai/all-minilm@384"
        provider.close()
