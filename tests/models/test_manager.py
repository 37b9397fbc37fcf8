"""Embedding by name: which model is meant, adapters made once, configuration that holds from the next call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from homing.embedders.local import LocalProvider
from homing.errors import InvalidArgument, InvalidKey, ModelNotReady, NotFound, UnknownProvider
from homing.models.config_service import LLMConfigService
from homing.models.manager import LLMManager
from homing.testing.loopback import LoopbackApi
from tests.models.conftest import KEY


@pytest.fixture
def remote(service: LLMConfigService, api: LoopbackApi) -> int:
    service.create_provider("openai", "openai", api_key=KEY, base_url=api.url + "/v1")
    return service.create_model("openai", "text-embedding-3-small", model_config={"dimensions": 512}).id


def test_without_names_the_default_embeds_and_is_made_where_there_is_none(manager: LLMManager) -> None:
    rows = manager.embed(["打开灯", "turn on the light"])
    np.testing.assert_array_equal(rows, LocalProvider().embed(["打开灯", "turn on the light"]))
    assert manager.service.get_default_model("embedding") is not None


@pytest.mark.usefixtures("remote")
def test_a_model_is_found_by_provider_by_key_or_by_both(manager: LLMManager, api: LoopbackApi) -> None:
    for provider, model in (("openai", None), (None, "text-embedding-3-small"), (None, None)):
        assert manager.embed(["一"], provider, model).shape == (1, 512)
    assert {one.body["dimensions"] for one in api.requests} == {512}


@pytest.mark.usefixtures("remote")
def test_a_model_that_two_providers_have_needs_both_names(manager: LLMManager, service: LLMConfigService) -> None:
    service.create_provider("second", "openai", api_key=KEY)
    service.create_model("second", "text-embedding-3-small")
    with pytest.raises(InvalidArgument, match="openai, second"):
        manager.embed(["x"], model="text-embedding-3-small")
    assert manager.model_registry.find_model("second", "text-embedding-3-small").provider.name == "second"


def test_unknown_and_disabled_models_are_told_apart(
    manager: LLMManager, service: LLMConfigService, remote: int
) -> None:
    with pytest.raises(NotFound, match="there are: text-embedding-3-small"):
        manager.embed(["x"], "openai", "text-embedding-4")
    with pytest.raises(NotFound, match="no provider 'nobody'"):
        manager.embed(["x"], "nobody")
    service.create_provider("local", "local")
    service.update_model(service.create_model("local", "other", model_config={"local": True}).id, is_default=True)
    service.update_model(remote, enabled=False)
    with pytest.raises(NotFound, match="is disabled"):
        manager.embed(["x"], "openai", "text-embedding-3-small")


def test_an_adapter_is_made_once_and_again_when_its_configuration_changes(
    manager: LLMManager, service: LLMConfigService, remote: int
) -> None:
    def adapter() -> object:
        return manager.get_or_create_adapter(manager.model_registry.find_model("openai"))

    first = adapter()
    service.create_model("openai", "text-embedding-3-large")
    assert adapter() is first
    service.update_model(remote, model_config={"dimensions": 256})
    assert adapter() is not first
    assert manager.embed(["x"], "openai", "text-embedding-3-small").shape == (1, 256)


def test_a_corrected_key_holds_from_the_next_call(manager: LLMManager, service: LLMConfigService, remote: int) -> None:
    service.update_provider("openai", api_key="sk-wrong")
    with pytest.raises(InvalidKey) as refused:
        manager.embed(["x"])
    assert "sk-wrong" not in str(refused.value) + repr(refused.value.details)
    service.update_provider("openai", api_key=KEY)
    assert len(manager.embed(["x"])) == 1


def test_a_provider_type_without_embeddings_says_which_have_them(
    manager: LLMManager, service: LLMConfigService
) -> None:
    service.create_provider("claude", "anthropic", api_key="sk-x")
    service.create_model("claude", "some-model", model_config={"dimensions": 8})
    with pytest.raises(UnknownProvider, match="ollama, openai"):
        manager.embed(["x"])


def test_a_local_model_with_another_width_than_configured_is_refused(
    manager: LLMManager, service: LLMConfigService
) -> None:
    service.ensure_default_embedding_model()
    default = service.get_default_model("embedding")
    assert default is not None
    service.update_model(default.id, model_config={"local": True, "dimensions": 512})
    with pytest.raises(ModelNotReady, match="512 dimensions, its files have 384"):
        manager.embed(["x"])


def test_a_local_model_that_is_not_there_names_the_command(manager: LLMManager, service: LLMConfigService) -> None:
    service.create_provider("local", "local")
    service.create_model("local", "all-MiniLM-L6-v2", model_config={"local": True})
    with pytest.raises(NotFound, match="homing models pull all-MiniLM-L6-v2"):
        manager.embed(["x"])


def test_relative_paths_and_scales_are_honoured(manager: LLMManager, service: LLMConfigService, tmp_path: Path) -> None:
    default = service.ensure_default_embedding_model()
    service.update_model(default.id, model_config={"local": True, "scale": {"border": 0.25, "steepness": 9.0}})
    adapter = manager.get_or_create_adapter(manager.model_registry.find_model())
    assert adapter.scale is not None
    assert adapter.scale.score(0.25) == pytest.approx(0.5, abs=0.01)
    assert adapter.id == LocalProvider().id
