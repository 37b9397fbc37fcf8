"""Seed 003, Search & Retrieval SR-2: every scenario through the channels, on the bundled model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import homing
from homing.channels import Channels, schemas
from homing.chat import Message
from homing.config import EmbeddingSettings, Settings
from homing.embedders.model_folder import BUNDLED
from homing.testing.scripted_chat import ScriptedChat
from tests.channels.invoking import AFRAID, HARBOUR, KEY, KITCHEN, LEFT_HANDED, LONELY, NOVEL, ask, save
from tests.channels.watched import WatchedHoming

NOTICE = "语义搜索暂时不可用，已切换为关键词搜索"


@pytest.fixture(scope="module")
def novel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Channels]:
    """A project whose paragraphs are embedded; tests that use it change nothing."""
    with homing.open(tmp_path_factory.mktemp("novel"), settings=Settings()) as app:
        channels = Channels(app)
        save(channels, "novel", "ch1", NOVEL)
        yield channels


def texts(results: Sequence[dict[str, object]]) -> list[object]:
    return [one["text"] for one in results]


class TestSemanticSearch:
    """向量嵌入与语义搜索."""

    def test_a_chunk_has_the_fields_of_the_seed(self, novel: Channels) -> None:
        found = ask(novel, "document:chunks", projectId="novel", documentId="ch1", includeEmbedding=True)["chunks"]
        fields = {"id", "documentId", "projectId", "text", "embedding", "startOffset", "endOffset", "updatedAt"}
        for chunk in found:
            assert fields <= set(chunk)
            assert len(chunk["embedding"]) == 384
            assert NOVEL[chunk["startOffset"] : chunk["endOffset"]] == chunk["text"]
        assert texts(found) == [LONELY, LEFT_HANDED, AFRAID, KITCHEN, KEY, HARBOUR]

    def test_the_default_parameters_are_those_of_the_seed(self) -> None:
        told = schemas()
        defaults: dict[str, dict[str, Any]] = {
            "EmbeddingGenerateRequest": {"model": "default"},
            "EmbeddingSearchRequest": {"topK": 20, "minScore": 0.55},
            "EmbeddingReindexRequest": {"batchSize": 128},
            "RagRetrieveRequest": {"topK": 5, "minScore": 0.7, "maxTokens": 1500},
        }
        for name, fields in defaults.items():
            properties = told["$defs"][name]["properties"]
            assert {field: properties[field]["default"] for field in fields} == fields

    def test_sr2_r1_s1_semantic_search_returns_similar_paragraphs(self, novel: Channels) -> None:
        found = ask(novel, "embedding:search", projectId="novel", query="孤独的感觉")
        assert found["mode"] == "semantic"
        assert found["fallback"] is None
        assert found["results"][0]["text"] == LONELY
        scores = [one["score"] for one in found["results"]]
        assert scores == sorted(scores, reverse=True)
        assert min(scores) >= 0.55
        # No word of the question stands in the paragraph.
        assert ask(novel, "search:fts:query", projectId="novel", query="孤独的感觉")["results"] == []

    def test_sr2_r1_s2_the_model_is_not_available_and_words_answer(self, tmp_path: Path) -> None:
        models = tmp_path / "models"
        shutil.copytree(BUNDLED, models / "own")
        described = json.loads((models / "own" / "model.json").read_text(encoding="utf-8"))
        (models / "own" / "model.json").write_text(json.dumps(described | {"name": "own"}), encoding="utf-8")
        settings = Settings(models=models, embedding=EmbeddingSettings(model="own"))
        with homing.open(tmp_path / "data", settings=settings) as app:
            save(Channels(app), "novel", "ch1", NOVEL)
            assert ask(Channels(app), "embedding:search", projectId="novel", query="沈舟害怕什么")["mode"] == "semantic"
        (models / "own" / "model.onnx").write_bytes(b"damaged")
        with homing.open(tmp_path / "data", settings=settings) as app:
            found = ask(Channels(app), "embedding:search", projectId="novel", query="沈舟怕水吗")
            by_words = ask(Channels(app), "search:fts:query", projectId="novel", query="沈舟怕水吗")
        assert found["mode"] == "fts-fallback"
        assert found["fallback"]["notice"] == NOTICE
        assert found["fallback"]["reason"] == "vector:MODEL_NOT_READY"
        assert found["results"][0]["text"] == AFRAID
        assert texts(found["results"]) == texts(by_words["results"])

    def test_sr2_r1_s3_a_changed_document_embeds_only_what_changed(self, tmp_path: Path) -> None:
        def chunks() -> dict[str, dict[str, Any]]:
            asked = {"projectId": "novel", "documentId": "ch1", "includeEmbedding": True}
            return {one["id"]: one for one in ask(channels, "document:chunks", **asked)["chunks"]}

        edited = AFRAID.replace("七岁那年", "九岁那年")
        with WatchedHoming(tmp_path / "data") as app:
            channels = Channels(app)
            assert len(save(channels, "novel", "ch1", NOVEL)["changed"]) == 6
            before = chunks()
            app.model.texts.clear()
            app.model.go.clear()
            saved = ask(
                channels, "document:save", projectId="novel", documentId="ch1", text=NOVEL.replace(AFRAID, edited)
            )
            # The editor has its answer, and goes on, while the model has not embedded anything yet.
            [changed] = saved["changed"]
            assert len(saved["unchanged"]) == 5
            assert [one["text"] for one in chunks().values() if one["pending"]] == [edited]
            assert ask(channels, "search:fts:query", projectId="novel", query="九岁")["results"][0]["pending"]
            app.model.go.set()
            assert ask(channels, "embedding:status", waitMs=30_000)["pending"] == 0
            after = chunks()
            assert app.model.texts == [edited]
        assert {key: one for key, one in after.items() if key != changed} == {
            key: one for key, one in before.items() if key != changed
        }
        assert after[changed]["embedding"] != before[changed]["embedding"]


class TestRetrievalForGeneration:
    """RAG 检索增强生成."""

    def continued(self, channels: Channels, chat: ScriptedChat, written: str) -> str:
        """What an editor does when the AI is to go on writing: Retrieved is one layer of the context."""
        found = ask(channels, "rag:retrieve", projectId="novel", query=written)
        layers = ["You continue the novel."]
        if found["chunks"]:
            layers.append("## Retrieved\n" + "\n".join(f"- {one['text']}" for one in found["chunks"]))
        return chat.complete([Message("system", "\n\n".join(layers)), Message("user", written)])

    def test_sr2_r2_s1_retrieved_paragraphs_reach_the_model(self, novel: Channels) -> None:
        found = ask(novel, "rag:retrieve", projectId="novel", query="沈舟走到河边")
        assert found["chunks"][0]["text"] == AFRAID
        assert set(found["chunks"][0]) == {"chunkId", "documentId", "text", "score", "tokenEstimate"}
        assert found["chunks"][0]["documentId"] == "ch1"
        assert found["truncated"] is False

        def writer(messages: Sequence[Message]) -> str:
            return "他停在岸边，不肯再往前一步。" if "沈舟怕水" in messages[0].text else "他脱了鞋跳进水里。"

        chat = ScriptedChat(writer)
        assert self.continued(novel, chat, "沈舟走到河边") == "他停在岸边，不肯再往前一步。"
        assert AFRAID in chat.asked[0][0].text

    def test_sr2_r2_s2_nothing_retrieved_does_not_stop_generation(self, novel: Channels) -> None:
        query = "How do I configure a Kubernetes ingress?"
        envelope = novel.invoke("rag:retrieve", {"projectId": "novel", "query": query})
        assert envelope["ok"] is True
        assert envelope["data"]["chunks"] == []
        assert (envelope["data"]["usedTokens"], envelope["data"]["truncated"]) == (0, False)
        chat = ScriptedChat("Write an Ingress resource.")
        assert self.continued(novel, chat, query) == "Write an Ingress resource."
        assert "Retrieved" not in chat.asked[0][0].text

    def test_sr2_r2_s3_the_budget_keeps_the_best_and_says_so(self, novel: Channels) -> None:
        asked = {"projectId": "novel", "query": "林晚用哪只手写字", "minScore": 0.0}
        whole = ask(novel, "rag:retrieve", **asked)
        assert len(whole["chunks"]) == 5
        assert whole["truncated"] is False
        scores = [one["score"] for one in whole["chunks"]]
        assert scores == sorted(scores, reverse=True)
        best = whole["chunks"][0]
        assert best["text"] == LEFT_HANDED
        budget = best["tokenEstimate"] + 1
        cut = ask(novel, "rag:retrieve", **asked, maxTokens=budget)
        assert cut["chunks"] == [best]
        assert cut["usedTokens"] == best["tokenEstimate"] <= budget
        assert cut["truncated"] is True

    def test_the_configuration_is_told_and_changed_and_kept(self, tmp_path: Path) -> None:
        with homing.open(tmp_path / "data", settings=Settings()) as app:
            assert ask(Channels(app), "rag:config:get") == {"topK": 5, "minScore": 0.7, "maxTokens": 1500}
            changed = ask(Channels(app), "rag:config:update", topK=2, minScore=0.0)
            assert changed == {"topK": 2, "minScore": 0.0, "maxTokens": 1500}
            wrong = Channels(app).invoke("rag:config:update", {"topK": 3, "minScore": 2})
            assert wrong["error"]["code"] == "INVALID_ARGUMENT"
        with homing.open(tmp_path / "data", settings=Settings()) as app:
            channels = Channels(app)
            assert ask(channels, "rag:config:get") == changed
            save(channels, "novel", "ch1", NOVEL)
            assert len(ask(channels, "rag:retrieve", projectId="novel", query="林晚")["chunks"]) == 2
            assert len(ask(channels, "rag:retrieve", projectId="novel", query="林晚", topK=4)["chunks"]) == 4
