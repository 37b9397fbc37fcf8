"""OpenAI's own client against our server, and what the server says to requests it cannot serve."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import numpy as np
import openai
import pytest
import uvicorn
from fastapi import FastAPI

import homing
from homing.app import Homing
from homing.config import Settings
from homing.embedders.local import LocalProvider
from homing.server.openai_api import openai_router
from homing.testing.loopback import Fault, LoopbackApi

BUNDLED = "all-MiniLM-L6-v2-zh"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homing]:
    with homing.open(tmp_path_factory.mktemp("served") / "data", settings=Settings()) as app:
        yield app


@pytest.fixture(scope="module")
def address(app: Homing) -> Iterator[str]:
    served = FastAPI()
    served.include_router(openai_router(app))
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(served, log_level="error", lifespan="off"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    server.should_exit = True
    thread.join()
    listener.close()


@pytest.fixture
def client(address: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=address, api_key="unused", max_retries=0) as client:
        yield client


def test_the_openai_client_embeds_one_text_and_several(client: openai.OpenAI) -> None:
    texts = ["打开卧室的灯", "turn on the bedroom light", "🌙 打开 light"]
    answer = client.embeddings.create(input=texts, model=BUNDLED)
    expected = LocalProvider().embed(texts)
    np.testing.assert_array_equal(np.array([one.embedding for one in answer.data], np.float32), expected)
    assert [one.index for one in answer.data] == [0, 1, 2]
    assert answer.model == BUNDLED
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 0
    [one] = client.embeddings.create(input=texts[0], model="default").data
    np.testing.assert_array_equal(np.array(one.embedding, np.float32), expected[0])


def test_float_and_base64_are_the_same_numbers(client: openai.OpenAI, address: str) -> None:
    as_floats = client.embeddings.create(input="灯塔", model=BUNDLED, encoding_format="float").data[0].embedding
    # Without a wish the client asks for base64 and decodes it.
    decoded = client.embeddings.create(input="灯塔", model=BUNDLED).data[0].embedding
    np.testing.assert_array_equal(np.array(as_floats, np.float32), np.array(decoded, np.float32))
    body = {"input": "灯塔", "model": BUNDLED, "encoding_format": "base64"}
    raw = httpx2.post(f"{address}/embeddings", json=body).json()
    assert isinstance(raw["data"][0]["embedding"], str)


def test_the_models_are_listed_and_described(client: openai.OpenAI) -> None:
    assert next(one.id for one in client.models.list()) == BUNDLED
    assert client.models.retrieve(BUNDLED).owned_by == "local"
    with pytest.raises(openai.NotFoundError, match="there are: all-MiniLM-L6-v2-zh"):
        client.models.retrieve("gpt-4o")


def test_the_right_dimensions_are_taken_and_others_refused(client: openai.OpenAI) -> None:
    assert len(client.embeddings.create(input="x", model=BUNDLED, dimensions=384).data[0].embedding) == 384
    with pytest.raises(openai.BadRequestError, match="gives 384 dimensions here, not 256") as refused:
        client.embeddings.create(input="x", model=BUNDLED, dimensions=256)
    assert refused.value.param == "dimensions"


def test_an_unknown_model_is_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        client.embeddings.create(input="x", model="text-embedding-9")
    assert (refused.value.code, refused.value.param) == ("model_not_found", "model")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"model": "default", "input": [1, 2, 3]}', "send the text itself"),
        ('{"model": "default", "input": [[1, 2], [3]]}', "send the text itself"),
        ('{"model": "default", "input": []}', "at least one"),
        ('{"model": "default", "input": ["a", ""]}', "input[1]"),
        ('{"model": "default", "input": {"text": "a"}}', "list of texts"),
        ('{"model": "default"}', "list of texts"),
        ('{"model": "default", "input": "a", "encoding_format": "int8"}', "'float' or 'base64'"),
        ('{"model": "default", "input": "a", "dimensions": 0}', "at least 1"),
        ('{"model": "default", "input": "a", "temperature": 1}', "temperature"),
        ('{"input": "a"}', "model parameter"),
        ('["a"]', "JSON object"),
        ("{", "could not parse"),
    ],
)
def test_what_cannot_be_served_is_refused_in_openais_shape(address: str, body: str, message: str) -> None:
    answer = httpx2.post(f"{address}/embeddings", content=body.encode())
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert message in error["message"]


def test_half_a_surrogate_pair_is_embedded_like_any_text(address: str) -> None:
    answer = httpx2.post(f"{address}/embeddings", content=b'{"model": "default", "input": "\\ud83d x"}')
    assert answer.status_code == 200


def test_too_many_texts_are_refused(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="at most 2048"):
        client.embeddings.create(input=["x"] * 2049, model=BUNDLED)


def test_it_follows_the_default_and_reports_a_dead_provider_without_its_key(
    tmp_path: Path, app: Homing, client: openai.OpenAI
) -> None:
    config = app.models.config
    with LoopbackApi(key="sk-served-key") as api:
        before = config.ensure_default_embedding_model()
        config.create_provider("remote", "openai", api_key="sk-served-key", base_url=api.url + "/v1")
        model = config.create_model("remote", "text-embedding-3-small", model_config={"dimensions": 512})
        assert len(client.embeddings.create(input="x", model="text-embedding-3-small").data[0].embedding) == 512
        assert len(client.embeddings.create(input="x", model="default").data[0].embedding) == 384
        config.update_model(model.id, is_default=True)
        assert len(client.embeddings.create(input="x", model="default").data[0].embedding) == 512
        assert [one.id for one in client.models.list()] == ["text-embedding-3-small", BUNDLED]
        api.always = Fault(status=401, body='{"error": {"message": "bad key sk-served-key"}}')
        with pytest.raises(openai.InternalServerError) as failed:
            client.embeddings.create(input="never seen before", model="default")
        assert failed.value.code == "INVALID_KEY"
        assert "sk-served-key" not in str(failed.value)
        config.update_model(before.id, is_default=True)
