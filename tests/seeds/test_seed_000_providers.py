"""Seed 000, Requirement Embedding模型配置读取: the scenarios about adapters, each named in its test."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from homing.embedders.ollama import OllamaProvider
from homing.embedders.openai import OpenAIProvider
from homing.testing.loopback import LoopbackApi


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi(key="sk-apiKey") as api:
        yield api


class TestEmbeddingAdapters:
    def test_openai_adapter_embed(self, api: LoopbackApi) -> None:
        """Scenario: 适配器embed方法实现（OpenAIAdapter）"""
        texts = ["Git提交工具", "文件读取工具", "计算工具"]
        adapter = OpenAIProvider("text-embedding-3-small", api_key="sk-apiKey", base_url=api.url + "/v1")
        vectors = adapter.embed(texts)
        [request] = api.requests
        assert request.path == "/v1/embeddings"
        assert request.body == {"input": texts, "model": "text-embedding-3-small", "encoding_format": "float"}
        assert request.headers["authorization"] == "Bearer sk-apiKey"
        assert vectors.shape == (3, 1536)
        assert len(vectors) == len(texts)
        adapter.close()

    def test_ollama_adapter_embed(self, api: LoopbackApi) -> None:
        """Scenario: OllamaAdapter embed方法实现"""
        api.key = ""
        adapter = OllamaProvider("nomic-embed-text", base_url=api.url)
        vectors = adapter.embed(["代码分析工具"])
        [request] = api.requests
        assert request.path == "/api/embed"
        sent = {"model": "nomic-embed-text", "input": "代码分析工具", "options": {"truncate": True}}
        assert sent.items() <= request.body.items()
        assert vectors.shape == (1, 768)
        adapter.close()

    def test_a_hundred_texts_are_one_request(self, api: LoopbackApi) -> None:
        """Scenario: 批量文本Embedding生成优化"""
        texts = [f"技能 {number}: skill number {number}" for number in range(100)]
        adapter = OpenAIProvider("text-embedding-3-small", api_key="sk-apiKey", base_url=api.url + "/v1")
        vectors = adapter.embed(texts)
        [request] = api.requests
        assert request.body["input"] == texts
        assert request.body["model"] == "text-embedding-3-small"
        assert vectors.shape == (100, 1536)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
        adapter.close()
