"""Settings become embedders: the bundled one, a pulled one, a remote one, or none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homing.config import Settings
from homing.errors import ConfigError, NotFound, Timeout
from homing.resolve import embedding_backend, local_models, resolve_embedder
from homing.testing.loopback import Fault, LoopbackApi

KEY = "sk-for-the-loopback"


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi(key=KEY) as api:
        yield api


def settings(folder: Path, embedding: dict[str, Any], **providers: dict[str, str]) -> Settings:
    return Settings.model_validate(
        {"data": folder / "data", "models": folder / "models", "embedding": embedding, "providers": providers}
    )


def test_by_default_the_bundled_model_embeds(tmp_path: Path) -> None:
    embedder = resolve_embedder(settings(tmp_path, {}))
    assert embedder is not None
    assert embedder.id == "local/all-MiniLM-L6-v2-zh:4@384"


def test_an_empty_provider_means_no_embedding(tmp_path: Path) -> None:
    assert resolve_embedder(settings(tmp_path, {"provider": ""})) is None


def test_a_model_that_was_not_pulled_says_how_to(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="homing models pull all-MiniLM-L6-v2"):
        resolve_embedder(settings(tmp_path, {"model": "all-MiniLM-L6-v2"}))


def test_a_provider_from_the_map_embeds_through_its_api(tmp_path: Path, api: LoopbackApi) -> None:
    chosen = {"provider_id": "mine", "model": "text-embedding-3-small", "dimensions": 64}
    provider = {"type": "openai", "api_key": KEY, "base_url": f"{api.url}/v1"}
    embedder = resolve_embedder(settings(tmp_path, chosen, mine=provider))
    assert embedder is not None
    assert embedder.embed(["打开灯"]).shape == (1, 64)
    assert embedder.embed(["打开灯"]).shape == (1, 64)
    assert len(api.requests) == 1, "the second answer comes from the cache"


def test_a_query_waits_for_a_remote_model_as_long_as_is_set(tmp_path: Path, api: LoopbackApi) -> None:
    chosen = {"provider_id": "mine", "model": "text-embedding-3-small", "dimensions": 64, "query_deadline": 0.05}
    provider = {"type": "openai", "api_key": KEY, "base_url": f"{api.url}/v1"}
    embedder = resolve_embedder(settings(tmp_path, chosen, mine=provider))
    assert embedder is not None
    over = threading.Event()
    api.always = Fault(text=lambda answer: answer if over.wait(600) else "")
    with pytest.raises(Timeout, match=r"no answer within 0\.05 s \(query\)"):
        embedder.embed(["打开灯"], kind="query")
    over.set()


def test_local_means_ollama_without_a_key(tmp_path: Path) -> None:
    with LoopbackApi() as ollama:
        chosen = {"provider": "local", "model": "nomic-embed-text", "dimensions": 32, "local": {"base_url": ollama.url}}
        embedder = resolve_embedder(settings(tmp_path, chosen))
        assert embedder is not None
        assert embedder.embed(["打开灯"]).shape == (1, 32)


def test_a_remote_provider_without_a_model_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"embedding\.model is not set"):
        resolve_embedder(settings(tmp_path, {"provider_id": "mine"}, mine={"type": "openai", "api_key": KEY}))


@pytest.mark.parametrize("kind", ["anthropic", "nonsense"])
def test_a_provider_without_embeddings_resolves_to_nothing(tmp_path: Path, kind: str) -> None:
    chosen = settings(tmp_path, {"provider_id": "mine", "model": "x"}, mine={"type": kind, "api_key": KEY})
    assert not embedding_backend(chosen)
    assert resolve_embedder(chosen) is None


def test_the_bundled_model_is_listed_first(tmp_path: Path) -> None:
    assert [model.name for model in local_models(settings(tmp_path, {}))] == ["all-MiniLM-L6-v2-zh"]
