"""Names become providers in one place."""

from __future__ import annotations

import subprocess
import sys

import pytest

import homing.embedders
from homing.embedders.ollama import OllamaProvider
from homing.embedders.provider import EmbeddingProvider
from homing.embedders.registry import PROVIDER_TYPE_TO_EMBEDDING_TYPE, PROVIDERS, Backend, ProviderEntry, create
from homing.errors import InvalidArgument, UnknownProvider
from homing.secret import Secret


@pytest.mark.parametrize("kind", PROVIDERS)
def test_every_type_can_be_created(kind: str) -> None:
    assert isinstance(create(kind), EmbeddingProvider)


def test_local_is_ollama_as_the_specification_has_it() -> None:
    assert isinstance(create("local"), OllamaProvider)
    assert create("local").id == create("ollama").id == "ollama/nomic-embed-text@768"


def test_options_reach_the_provider() -> None:
    assert create("openai", model="text-embedding-3-large", api_key="sk", dimensions=256).id == (
        "openai/text-embedding-3-large@256"
    )


def test_a_typo_in_the_type_lists_what_exists() -> None:
    with pytest.raises(UnknownProvider, match="'opnai'; known: bundled, dashscope, google, local, ollama, openai"):
        create("opnai")


def test_a_typo_in_an_option_lists_what_exists() -> None:
    with pytest.raises(InvalidArgument, match="no option modle; its options are model, api_key"):
        create("openai", modle="x")


def test_an_option_of_one_provider_is_listed_beside_those_of_all() -> None:
    for kind, own in (("openai", "scale, endpoint, send_dimensions"), ("ollama", "scale, keep_alive")):
        with pytest.raises(InvalidArgument, match=f"model, api_key, base_url, .*{own}$"):
            create(kind, modle="x")


def test_every_public_name_can_be_imported() -> None:
    assert all(getattr(homing.embedders, name) is not None for name in homing.embedders.__all__)


def test_every_embedding_type_is_one_that_can_be_created() -> None:
    assert set(PROVIDER_TYPE_TO_EMBEDDING_TYPE.values()) <= set(PROVIDERS)
    assert "anthropic" not in PROVIDER_TYPE_TO_EMBEDDING_TYPE


def test_the_registry_imports_no_http_library() -> None:
    script = "import sys, homing.embedders.registry; sys.exit('httpx2' in sys.modules or 'onnxruntime' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_keys_are_masked_wherever_they_are_shown() -> None:
    entry = ProviderEntry("openai", Secret("sk-precious"))
    backend = Backend("openai", Secret("sk-precious"))
    for shown in (repr(entry), str(entry), repr(backend), f"{entry.api_key}", f"{backend.api_key!r}", str([entry])):
        assert "precious" not in shown
    assert backend.api_key.reveal() == "sk-precious"
    assert backend
    assert not Backend()
    assert Secret("a") == Secret(Secret("a")) != Secret("b")
    assert len({Secret("a"), Secret("a")}) == 1
