"""Seed 001: REQ-EMB-001, 010 and 011. One test per scenario, named after it."""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import numpy as np
import pytest
import sqlite_vec  # type: ignore[import-untyped]

from homing.embedders.provider import EmbeddingProvider
from homing.embedders.registry import Backend, ProviderEntry, create, resolve_backend
from homing.errors import UnknownProvider
from homing.secret import Secret
from homing.testing.loopback import LoopbackApi
from homing.vectors import pack

KEY = "sk-seed"
TEXTS = ["打开卧室的灯", "turn on the light", "混合 mixed"]


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi(key=KEY) as api:
        yield api


def provider(api: LoopbackApi, kind: str, dimensions: int) -> EmbeddingProvider:
    model, base = {
        "openai": ("text-embedding-3-small", "/v1"),
        "google": ("gemini-embedding-001", "/v1beta"),
        "local": ("nomic-embed-text", "/v1"),
        "dashscope": ("text-embedding-v4", "/api/v1"),
    }[kind]
    return create(kind, model=model, api_key=KEY, base_url=api.url + base, dimensions=dimensions)


class TestReqEmb001EmbeddingProviderInterface:
    def test_given_openai_api_key_and_model_then_float32_vectors_of_configured_dimensions(
        self, api: LoopbackApi
    ) -> None:
        vectors = provider(api, "openai", 512).embed(TEXTS)
        assert vectors.shape == (3, 512)
        assert vectors.dtype == np.float32

    def test_given_google_api_key_and_model_then_vectors_matching_configured_dimensions(self, api: LoopbackApi) -> None:
        assert provider(api, "google", 768).embed(TEXTS).shape == (3, 768)

    def test_given_local_ollama_endpoint_then_vectors_from_the_local_model(self, api: LoopbackApi) -> None:
        assert provider(api, "local", 768).embed(TEXTS).shape == (3, 768)
        assert api.requests[0].body["model"] == "nomic-embed-text"

    def test_given_an_unknown_provider_type_when_creating_via_registry_then_an_error(self) -> None:
        with pytest.raises(UnknownProvider, match=r"known: .*google.*openai"):
            create("cohere")

    def test_given_google_provider_with_dimensions_then_embed_content_includes_output_dimensionality(
        self, api: LoopbackApi
    ) -> None:
        google = provider(api, "google", 768)
        google.embed(TEXTS[:1])
        google.embed(TEXTS)
        single, batch = api.requests
        assert single.body["outputDimensionality"] == 768
        assert [request["outputDimensionality"] for request in batch.body["requests"]] == [768] * 3

    def test_given_openai_provider_with_dimensions_then_request_includes_dimensions(self, api: LoopbackApi) -> None:
        provider(api, "openai", 512).embed(TEXTS)
        assert api.requests[0].body["dimensions"] == 512

    def test_given_local_provider_with_dimensions_then_request_includes_dimensions(self, api: LoopbackApi) -> None:
        provider(api, "local", 256).embed(TEXTS)
        assert api.requests[0].body["dimensions"] == 256

    @pytest.mark.parametrize("kind", ["openai", "google", "local", "dashscope"])
    def test_given_any_provider_then_vector_dimension_matches_sqlite_vec_table(
        self, api: LoopbackApi, kind: str
    ) -> None:
        embedder = provider(api, kind, 128)
        db = apsw.Connection(":memory:")
        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
        db.execute(f"create virtual table v using vec0(embedding float[{embedder.dimensions}] distance_metric=cosine)")
        for rowid, row in enumerate(embedder.embed(TEXTS)):
            db.execute("insert into v (rowid, embedding) values (?, ?)", (rowid, pack(row)))
        query = pack(embedder.embed([TEXTS[1]], kind="query")[0])
        assert db.execute("select rowid from v where embedding match ? and k = 1", (query,)).get == 1
        db.close()


PROVIDERS = {
    "gemini-1": ProviderEntry("gemini", Secret("AIza-1")),
    "my-openai": ProviderEntry("openai", Secret("sk-1")),
    "my-ollama": ProviderEntry("ollama"),
    "claude": ProviderEntry("anthropic", Secret("sk-ant")),
}


class TestReqEmb010ProviderIdBasedResolution:
    def test_gemini_resolves_to_google_and_its_key(self) -> None:
        assert resolve_backend("gemini-1", "", PROVIDERS) == Backend("google", Secret("AIza-1"))

    def test_openai_resolves_to_openai_and_its_key(self) -> None:
        assert resolve_backend("my-openai", "", PROVIDERS) == Backend("openai", Secret("sk-1"))

    def test_ollama_resolves_to_local_and_needs_no_key(self) -> None:
        assert resolve_backend("my-ollama", "", PROVIDERS) == Backend("local", Secret(""))

    def test_anthropic_resolves_to_nothing(self) -> None:
        assert resolve_backend("claude", "", PROVIDERS) == Backend("", Secret(""))

    def test_an_id_that_does_not_exist_resolves_to_nothing(self) -> None:
        assert resolve_backend("nobody", "", PROVIDERS) == Backend("", Secret(""))


class TestReqEmb011EmbeddingProviderResolution:
    def test_a_valid_provider_id_resolves_type_and_key_from_that_entry(self) -> None:
        backend = resolve_backend("my-openai", "local", PROVIDERS)
        assert (backend.type, backend.api_key.reveal()) == ("openai", "sk-1")

    def test_provider_local_is_local_without_a_key(self) -> None:
        assert resolve_backend("", "local", PROVIDERS) == Backend("local", Secret(""))

    def test_neither_of_both_disables_embedding(self) -> None:
        assert not resolve_backend("", "", PROVIDERS)
        assert not resolve_backend("", "", {})
