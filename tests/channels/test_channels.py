"""The channels in this process: what they take, what they refuse, and what they say when something is down."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import homing
from homing.app import Homing
from homing.channels import CHANNELS, Channels, Work
from homing.channels.envelope import codes
from homing.config import EmbeddingSettings, ProviderSettings, Settings
from homing.embedders.local import LocalProvider
from homing.embedders.model_folder import BUNDLED
from homing.embedders.provider import EmbeddingProvider
from homing.testing.loopback import Fault, LoopbackApi
from tests.channels.invoking import AFRAID, HARBOUR, KEY, KITCHEN, LONELY, NOVEL, ask, refused, save
from tests.channels.watched import WatchedHoming

KEYWORDS_ONLY = Settings(embedding=EmbeddingSettings(provider=""))
NOTICE = "语义搜索暂时不可用，已切换为关键词搜索"


@pytest.fixture(scope="module")
def novel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Channels]:
    with homing.open(tmp_path_factory.mktemp("novel"), settings=Settings()) as app:
        channels = Channels(app)
        save(channels, "novel", "ch1", NOVEL)
        save(channels, "other", "ch1", "沈舟在另一本书里是个水手，一点也不怕水。")
        yield channels


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Channels]:
    """Without any model."""
    with homing.open(tmp_path / "data", settings=KEYWORDS_ONLY) as app:
        yield Channels(app)


def remote(api: LoopbackApi, **provider: Any) -> Settings:
    there = ProviderSettings.model_validate(
        {"type": "openai", "api_key": "sk-over-there", "base_url": f"{api.url}/v1", **provider}
    )
    embedding = EmbeddingSettings(provider_id="there", model="text-embedding-3-small", dimensions=64)
    return Settings(embedding=embedding, providers={"there": there})


class TestRefusals:
    @pytest.mark.parametrize("name", CHANNELS)
    def test_every_channel_refuses_what_it_does_not_know(self, plain: Channels, name: str) -> None:
        error = refused(plain, name, {"apiKey": "sk-secret", "project_id": "p"})
        assert error["code"] == "INVALID_ARGUMENT"
        assert error["message"].startswith(f"{name}: ")
        assert "apiKey is not known" in error["message"]
        assert {one["field"] for one in error["details"]["problems"]} >= {"apiKey", "project_id"}
        assert "sk-secret" not in str(error)
        assert "it takes" in error["message"]

    @pytest.mark.parametrize("payload", [[], "text", 5, True, ["projectId"]])
    def test_a_payload_is_an_object(self, plain: Channels, payload: Any) -> None:
        error = refused(plain, "embedding:search", payload)
        assert (error["code"], "JSON object" in error["message"]) == ("INVALID_ARGUMENT", True)

    @pytest.mark.parametrize(
        ("channel", "payload", "field"),
        [
            ("embedding:search", {"projectId": "p"}, "query"),
            ("embedding:search", {"projectId": "", "query": "q"}, "projectId"),
            ("embedding:search", {"projectId": 5, "query": "q"}, "projectId"),
            ("embedding:search", {"projectId": "a\0b", "query": "q"}, "projectId"),
            ("embedding:search", {"projectId": "p", "query": "q", "topK": 1.5}, "topK"),
            ("search:fts:query", {"projectId": "p", "query": "q", "offset": 8_001}, "offset"),
            ("embedding:search", {"projectId": "p", "query": "q", "topK": "20"}, "topK"),
            ("embedding:search", {"projectId": "p", "query": "q", "topK": True}, "topK"),
            ("embedding:search", {"projectId": "p", "query": "q", "topK": 0}, "topK"),
            ("embedding:search", {"projectId": "p", "query": "q", "minScore": 1.5}, "minScore"),
            ("embedding:search", {"projectId": "p", "query": "q", "mode": "fts"}, "mode"),
            ("embedding:search", {"projectId": "p", "query": None}, "query"),
            ("embedding:generate", {"texts": []}, "texts"),
            ("embedding:generate", {"texts": "灯塔"}, "texts"),
            ("embedding:generate", {"texts": ["a", ""]}, "texts.1"),
            ("embedding:generate", {"texts": ["a"] * 2049}, "texts"),
            ("embedding:reindex", {"batchSize": 0}, "batchSize"),
            ("search:fts:query", {"projectId": "p", "query": "q", "offsetUnit": "bytes"}, "offsetUnit"),
            ("rag:config:update", {"minScore": -0.1}, "minScore"),
            ("rag:config:update", {"maxTokens": 1.5}, "maxTokens"),
            ("document:save", {"projectId": "p", "documentId": "d", "text": 5}, "text"),
        ],
    )
    def test_a_wrong_value_is_named(self, plain: Channels, channel: str, payload: Any, field: str) -> None:
        error = refused(plain, channel, payload)
        assert error["code"] == "INVALID_ARGUMENT"
        assert field in [one["field"] for one in error["details"]["problems"]]
        assert field in error["message"]

    def test_a_whole_number_may_be_written_with_a_point(self, plain: Channels) -> None:
        assert ask(plain, "embedding:search", projectId="p", query="q", topK=5.0)["results"] == []
        assert ask(plain, "rag:config:update", topK=3.0) == {"topK": 3, "minScore": 0.7, "maxTokens": 1500}

    def test_a_near_miss_is_guessed(self, plain: Channels) -> None:
        error = refused(plain, "embedding:search", {"projectId": "p", "query": "q", "topk": 5})
        assert "did you mean topK?" in error["message"]

    def test_a_document_without_its_project_is_refused(self, plain: Channels) -> None:
        assert "projectId" in refused(plain, "embedding:reindex", {"documentId": "d"})["message"]

    def test_a_channel_that_does_not_exist_is_not_found(self, plain: Channels) -> None:
        error = refused(plain, "embedding:serach", {})
        assert (error["code"], "embedding:search" in error["message"]) == ("NOT_FOUND", True)

    def test_a_request_that_was_taken_back_is_not_begun(self, plain: Channels) -> None:
        payload = {"projectId": "p", "documentId": "d", "text": "灯塔"}
        envelope = plain.invoke("document:save", payload, work=Work(cancelled=lambda: True))
        assert envelope["error"]["code"] == "CANCELED"
        assert ask(plain, "project:list") == {"projects": []}

    def test_what_nobody_foresaw_says_nothing_of_its_cause(self, tmp_path: Path) -> None:
        class Surprising(Homing):
            @property
            def embedder(self) -> EmbeddingProvider | None:
                raise RuntimeError("Authorization: Bearer sk-secret")

        with Surprising(KEYWORDS_ONLY.model_copy(update={"data": tmp_path})) as app:
            error = refused(Channels(app), "embedding:generate", {"texts": ["灯塔"]})
        assert error["code"] == "INTERNAL"
        assert "sk-secret" not in str(error)


class TestGenerate:
    def test_the_vectors_are_those_of_the_default_model(self, novel: Channels) -> None:
        texts = ["打开卧室的灯", "turn on the bedroom light", "🌙 打开 light"]
        made = ask(novel, "embedding:generate", texts=texts)
        assert (made["model"], made["dimensions"]) == ("local/all-MiniLM-L6-v2-zh:4@384", 384)
        np.testing.assert_array_equal(np.array(made["embeddings"], np.float32), LocalProvider().embed(texts))
        for name in ("default", "all-MiniLM-L6-v2-zh", "local/all-MiniLM-L6-v2-zh:4@384"):
            assert ask(novel, "embedding:generate", texts=texts, model=name) == made

    def test_another_width_is_a_mismatch(self, novel: Channels) -> None:
        assert ask(novel, "embedding:generate", texts=["灯"], dimensions=384)["dimensions"] == 384
        error = refused(novel, "embedding:generate", {"texts": ["灯"], "dimensions": 1536})
        assert error["code"] == "EMBEDDING_DIMENSION_MISMATCH"
        assert error["details"] == {"expected": 1536, "actual": 384}

    def test_a_model_that_is_not_configured_is_not_found(self, novel: Channels) -> None:
        assert refused(novel, "embedding:generate", {"texts": ["灯"], "model": "gpt-9"})["code"] == "NOT_FOUND"

    def test_without_a_model_it_is_not_ready(self, plain: Channels) -> None:
        assert refused(plain, "embedding:generate", {"texts": ["灯"]})["code"] == "MODEL_NOT_READY"
        status = ask(plain, "embedding:status")
        assert (status["model"], status["dimensions"], status["problem"]["code"]) == (None, None, "MODEL_NOT_READY")

    def test_a_refused_key_is_not_repeated(self, tmp_path: Path) -> None:
        with LoopbackApi(key="sk-right") as api:
            api.always = Fault(status=401, body='{"error": {"message": "bad key sk-over-there"}}')
            with homing.open(tmp_path / "data", settings=remote(api)) as app:
                error = refused(Channels(app), "embedding:generate", {"texts": ["灯"]})
        assert error["code"] == "INVALID_KEY"
        assert "sk-over-there" not in str(error)


class TestSearch:
    @pytest.mark.parametrize("mode", ["semantic", "hybrid"])
    def test_it_stays_in_its_project(self, novel: Channels, mode: str) -> None:
        found = ask(novel, "embedding:search", projectId="novel", query="沈舟怕水", mode=mode, minScore=0.0)
        assert found["mode"] == mode
        assert found["results"][0]["text"] == AFRAID
        assert {one["projectId"] for one in found["results"]} == {"novel"}
        assert ask(novel, "embedding:search", projectId="no such project", query="沈舟")["results"] == []

    @pytest.mark.parametrize("query", ["", "   ", "？", "😀"])
    def test_a_query_without_words_finds_nothing_and_harms_nothing(self, novel: Channels, query: str) -> None:
        assert novel.invoke("embedding:search", {"projectId": "novel", "query": query})["ok"]
        assert novel.invoke("search:fts:query", {"projectId": "novel", "query": query})["ok"]

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("厨房", KITCHEN),
            ("廚房", KITCHEN),
            ("silver key", KEY),
            ('"silver key on a chain"', KEY),
            ("ｃｏｎｔａｉｎｅｒ", HARBOUR),
            ("码头 container", HARBOUR),
        ],
    )
    def test_words_are_found_and_shown_where_they_stand(self, novel: Channels, query: str, expected: str) -> None:
        found = ask(novel, "search:fts:query", projectId="novel", query=query)["results"][0]
        assert found["text"] == expected == NOVEL[found["startOffset"] : found["endOffset"]]
        assert found["highlights"]
        for place, inside in zip(found["highlights"], found["snippetHighlights"], strict=True):
            assert found["startOffset"] <= place["start"] < place["end"] <= found["endOffset"]
            assert NOVEL[place["start"] : place["end"]] == found["snippet"][inside["start"] : inside["end"]]
        assert ask(novel, "search:fts:query", projectId="novel", query='"key silver"')["results"] == []

    def test_pages_follow_each_other(self, plain: Channels) -> None:
        text = "\n\n".join(f"灯塔 {number} 号在海边亮了一整夜，一直亮到天明。" for number in range(25))
        ask(plain, "document:save", projectId="p", documentId="d", text=text)
        asked = {"projectId": "p", "query": "灯塔", "limit": 10}
        pages = [ask(plain, "search:fts:query", **asked, offset=offset) for offset in (0, 10, 20)]
        assert [(len(page["results"]), page["hasMore"]) for page in pages] == [(10, True), (10, True), (5, False)]
        assert len({one["chunkId"] for page in pages for one in page["results"]}) == 25

    def test_the_farthest_page_is_a_page(self, plain: Channels) -> None:
        ask(plain, "document:save", projectId="p", documentId="d", text="灯塔")
        asked = {"projectId": "p", "query": "灯塔", "limit": 1000, "offset": 8_000}
        assert ask(plain, "search:fts:query", **asked)["results"] == []
        assert len(ask(plain, "search:fts:query", **{**asked, "offset": 0})["results"]) == 1

    def test_without_a_model_words_answer_and_say_so(self, plain: Channels) -> None:
        ask(plain, "document:save", projectId="novel", documentId="ch1", text=NOVEL)
        for mode in ("semantic", "hybrid"):
            found = ask(plain, "embedding:search", projectId="novel", query="沈舟怕水", mode=mode)
            assert (found["mode"], found["fallback"]["notice"]) == ("fts-fallback", NOTICE)
            assert found["results"][0]["text"] == AFRAID
            assert found["results"][0]["score"] is None
        retrieved = ask(plain, "rag:retrieve", projectId="novel", query="沈舟怕水")
        assert (retrieved["mode"], retrieved["chunks"][0]["text"]) == ("fts-fallback", AFRAID)
        assert retrieved["fallback"]["notice"] == NOTICE

    def test_a_model_that_was_never_fetched_costs_no_document_and_is_used_once_it_is_there(
        self, tmp_path: Path
    ) -> None:
        settings = Settings(models=tmp_path / "models", embedding=EmbeddingSettings(model="own"))
        with homing.open(tmp_path / "data", settings=settings) as app:
            channels = Channels(app)
            ask(channels, "document:save", projectId="novel", documentId="ch1", text=NOVEL)
            found = ask(channels, "embedding:search", projectId="novel", query="沈舟怕水")
            assert (found["mode"], found["fallback"]["reason"]) == ("fts-fallback", "vector:MODEL_NOT_READY")
            assert found["results"][0]["text"] == AFRAID
            assert "homing models pull own" in ask(channels, "embedding:status")["problem"]["message"]
            shutil.copytree(BUNDLED, tmp_path / "models" / "own")
            assert ask(channels, "embedding:reindex")["pending"] == 0
            found = ask(channels, "embedding:search", projectId="novel", query="孤独的感觉")
            assert (found["mode"], found["results"][0]["text"]) == ("semantic", LONELY)
            assert ask(channels, "embedding:status")["problem"] is None

    def test_a_dead_api_is_told_and_recovers_by_itself(self, tmp_path: Path) -> None:
        with LoopbackApi(key="sk-over-there") as api, homing.open(tmp_path / "data", settings=remote(api)) as app:
            channels = Channels(app)
            save(channels, "novel", "ch1", NOVEL)
            api.always = Fault(status=500, body="the key sk-over-there made me fail")
            found = ask(channels, "embedding:search", projectId="novel", query="厨房的香味", minScore=0.0)
            assert (found["mode"], found["results"][0]["text"]) == ("fts-fallback", KITCHEN)
            assert found["fallback"]["reason"].startswith("vector:")
            assert "sk-over-there" not in str(found)
            api.always = None
            until = threading.Event()
            for _ in range(1_200):
                found = ask(channels, "embedding:search", projectId="novel", query="厨房的香味", minScore=0.0)
                if found["mode"] == "semantic" or until.wait(0.1):
                    break
            assert (found["mode"], found["fallback"]) == ("semantic", None)

    def test_a_paragraph_that_waits_for_its_vector_is_found_by_its_words(self, tmp_path: Path) -> None:
        with WatchedHoming(tmp_path / "data") as app:
            channels = Channels(app)
            save(channels, "novel", "ch1", LONELY)
            app.model.go.clear()
            ask(channels, "document:save", projectId="novel", documentId="ch2", text=KEY)
            found = ask(channels, "embedding:search", projectId="novel", query="silver key", minScore=0.9)["results"]
            assert [(one["text"], one["pending"]) for one in found] == [(KEY, True)]
            assert ask(channels, "embedding:status", projectId="novel")["pending"] == 1
            app.model.go.set()
            assert ask(channels, "embedding:status", projectId="novel", waitMs=20_000)["pending"] == 0


class TestDocuments:
    def test_a_document_is_saved_listed_read_and_forgotten(self, plain: Channels) -> None:
        text = "灯塔。\r\n\r\nA lighthouse 😀.\r\n"
        ask(plain, "document:save", projectId="小说", documentId="第一章", text=text)
        ask(plain, "document:save", projectId="小说", documentId="空", text="")
        assert ask(plain, "document:text", projectId="小说", documentId="第一章") == {"text": text}
        empty, first = ask(plain, "document:list", projectId="小说")["documents"]
        assert (empty["documentId"], empty["characters"], empty["chunks"]) == ("空", 0, 0)
        assert (first["characters"], first["updatedAt"] > 1_700_000_000_000) == (len(text), True)
        assert [one["projectId"] for one in ask(plain, "project:list")["projects"]] == ["小说"]
        assert ask(plain, "document:delete", projectId="小说", documentId="第一章") == {"deleted": True}
        assert ask(plain, "document:delete", projectId="小说", documentId="第一章") == {"deleted": False}
        error = refused(plain, "document:text", {"projectId": "小说", "documentId": "第一章"})
        assert (error["code"], error["details"]["document"]) == ("NOT_FOUND", "第一章")
        assert ask(plain, "search:fts:query", projectId="小说", query="灯塔")["results"] == []
        assert ask(plain, "project:delete", projectId="小说") == {"documents": 1}
        assert ask(plain, "project:delete", projectId="小说") == {"documents": 0}

    def test_a_document_keeps_its_chunks_under_another_name_and_in_another_project(self, plain: Channels) -> None:
        saved = ask(plain, "document:save", projectId="小说", documentId="第一章", text="灯塔。\n\nA harbour.")
        place = {"projectId": "小说", "documentId": "第一章"}
        assert ask(plain, "document:rename", **place, newDocumentId="序 😀") == {
            "projectId": "小说",
            "documentId": "序 😀",
        }
        place = {"projectId": "小说", "documentId": "序 😀"}
        moved = {"projectId": "archive", "documentId": "序 😀"}
        assert ask(plain, "document:move", **place, toProjectId="archive") == moved
        assert [one["id"] for one in ask(plain, "document:chunks", **moved)["chunks"]] == saved["changed"]
        [found] = ask(plain, "search:fts:query", projectId="archive", query="harbour")["results"]
        assert found["documentId"] == "序 😀"
        assert refused(plain, "document:rename", {**place, "newDocumentId": "x"})["code"] == "NOT_FOUND"
        ask(plain, "document:save", projectId="小说", documentId="序 😀", text="二")
        assert refused(plain, "document:move", {**moved, "toProjectId": "小说"})["code"] == "INVALID_ARGUMENT"

    def test_offsets_in_utf16_slice_what_a_javascript_string_holds(self, plain: Channels) -> None:
        text = "😀😀 一。\n\n𠮷野家 two.\n\n三。"
        ask(plain, "document:save", projectId="p", documentId="d", text=text)
        units = text.encode("utf-16-le")
        asked = {"projectId": "p", "documentId": "d"}
        for one in ask(plain, "document:chunks", **asked, offsetUnit="utf-16")["chunks"]:
            assert units[2 * one["startOffset"] : 2 * one["endOffset"]].decode("utf-16-le") == one["text"]
        for one in ask(plain, "document:chunks", **asked)["chunks"]:
            assert text[one["startOffset"] : one["endOffset"]] == one["text"]


def test_many_threads_may_be_the_first_to_ask(tmp_path: Path) -> None:
    with homing.open(tmp_path / "data", settings=KEYWORDS_ONLY) as app, ThreadPoolExecutor(16) as pool:
        channels = Channels(app)
        saves = [
            pool.submit(ask, channels, "document:save", projectId="p", documentId=f"d{number}", text=f"灯塔 {number}")
            for number in range(48)
        ]
        assert all(len(one.result()["changed"]) == 1 for one in saves)
        assert len(ask(channels, "document:list", projectId="p")["documents"]) == 48


def test_the_page_names_every_channel_and_the_codes_that_clients_handle() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ipc.md").read_text(encoding="utf-8")
    assert [name for name in CHANNELS if f"| `{name}` |" not in page] == []
    told = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+|CANCELED|BACKPRESSURE|INTERNAL|TIMEOUT)`", page))
    assert told - {"PROTOCOL_MISMATCH"} <= set(codes())
