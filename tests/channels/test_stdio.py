"""`homing ipc` as a real process: the handshake, many requests at once, and what must not disturb them."""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homing.testing.loopback import Fault, LoopbackApi
from tests.channels.invoking import AFRAID, HARBOUR, LEFT_HANDED, NOVEL
from tests.channels.ipc_process import IpcProcess
from tests.channels.unembedded import PARAGRAPHS, not_yet_embedded
from tests.forked import run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ipc")


@pytest.fixture(scope="module")
def shared(folder: Path) -> Iterator[IpcProcess]:
    """One process with a novel in it, for tests that leave it as it is."""
    with IpcProcess(folder / "data", "--max-message", "1") as process:
        process.initialize()
        process.ask("document:save", projectId="novel", documentId="ch1", text=NOVEL)
        assert process.ask("embedding:status", waitMs=30_000)["pending"] == 0
        yield process


def embedded_texts(api: LoopbackApi) -> list[str]:
    return [text for request in api.requests for text in request.body["input"]]


def test_nothing_is_served_before_the_right_version_is_named(tmp_path: Path) -> None:
    with IpcProcess(tmp_path / "data") as process:
        early = process.wait(process.send("project:list", {}))["error"]
        assert (early["code"], early["data"]["code"]) == (-32002, "NOT_INITIALIZED")
        newer = process.wait(process.send("initialize", {"protocolVersion": 2}))["error"]
        assert newer["data"] == {"code": "PROTOCOL_MISMATCH", "details": {"asked": 2, "supported": [1]}}
        assert "update Homing" in newer["message"]
        older = process.wait(process.send("initialize", {"protocolVersion": 0}))["error"]
        assert "update the client" in older["message"]
        for params in (None, {}, {"protocolVersion": "1"}, {"protocolVersion": True}, [1]):
            wrong = process.wait(process.send("initialize", params))["error"]
            assert wrong["data"]["code"] == "INVALID_ARGUMENT"
        # A newer client may say more about itself than we know of.
        greeting = process.call("initialize", {"protocolVersion": 1, "client": {"name": "t"}, "processId": 1})
        assert greeting["server"]["name"] == "homing"
        assert "embedding:search" in greeting["channels"]
        assert greeting["limits"]["messageBytes"] == 64 * 1024 * 1024
        again = process.wait(process.send("initialize", {"protocolVersion": 1}))
        assert "already" in again["error"]["message"]
        assert process.ask("project:list") == {"projects": []}


class TestRequests:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [("林晚用哪只手写字", LEFT_HANDED), ("who is afraid of water", AFRAID), ("港口的 container", HARBOUR)],
    )
    def test_chinese_english_and_mixed_questions_are_answered(
        self, shared: IpcProcess, query: str, expected: str
    ) -> None:
        found = shared.ask("embedding:search", projectId="novel", query=query)
        assert found["results"][0]["text"] == expected
        by_words = shared.ask("search:fts:query", projectId="novel", query=query)
        assert query == "who is afraid of water" or by_words["results"][0]["text"] == expected

    def test_offsets_count_as_asked(self, shared: IpcProcess) -> None:
        def after_emoji(unit: str) -> tuple[str, str]:
            [found] = shared.ask("search:fts:query", projectId="novel", query="漂流木", offsetUnit=unit)["results"]
            [place], [inside] = found["highlights"], found["snippetHighlights"]
            encoding, width = ("utf-16-le", 2) if unit == "utf-16" else ("utf-32-le", 4)
            whole, snippet = NOVEL.encode(encoding), found["snippet"].encode(encoding)
            return (
                whole[place["start"] * width : place["end"] * width].decode(encoding),
                snippet[inside["start"] * width : inside["end"] * width].decode(encoding),
            )

        assert after_emoji("utf-16") == after_emoji("characters") == ("漂流木", "漂流木")

    def test_a_hundred_requests_at_once_each_get_their_own_answer(self, shared: IpcProcess) -> None:
        queries = ["林晚", "沈舟", "厨房", "silver key", "漂流木"]
        expected = {
            one: shared.ask("search:fts:query", projectId="novel", query=one)["results"][0]["chunkId"]
            for one in queries
        }
        sent = {}
        for number in range(100):
            query = queries[number % 5]
            channel = "search:fts:query" if number % 2 else "embedding:search"
            sent[shared.send(channel, {"projectId": "novel", "query": query})] = query
        for request, query in sent.items():
            envelope = shared.wait(request)["result"]
            assert envelope["ok"]
            assert expected[query] in [one["chunkId"] for one in envelope["data"]["results"]]
            assert shared.answers(request) == 1

    def test_saves_that_are_not_waited_for_keep_their_order(self, shared: IpcProcess) -> None:
        for number in range(60):
            text = f"第{number}稿。" + "很长的一段。" * (2000 if number % 7 == 0 else 1)
            shared.send("document:save", {"projectId": "drafts", "documentId": "d", "text": text})
        told = shared.ask("document:text", projectId="drafts", documentId="d")
        assert told["text"].startswith("第59稿。")
        assert shared.ask("project:delete", projectId="drafts") == {"documents": 1}

    def test_saves_that_have_to_wait_keep_nobody_else_waiting(self, shared: IpcProcess, folder: Path) -> None:
        other = sqlite3.connect(folder / "data" / "homing.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        saves = [
            shared.send("document:save", {"projectId": "slow", "documentId": f"d{at % 20}", "text": f"第{at}稿"})
            for at in range(60)
        ]
        waits = [shared.send("embedding:status", {"waitMs": 60_000}) for _ in range(20)]
        assert shared.ask("embedding:search", projectId="novel", query="沈舟怕什么")["results"][0]["text"] == AFRAID
        assert shared.ask("document:text", projectId="novel", documentId="ch1")["text"] == NOVEL
        assert [shared.answers(one) for one in saves + waits] == [0] * 80
        shared.send("document:save", {"projectId": "slow", "documentId": "d0", "text": "又一稿"}, id="twice")
        shared.send("project:list", {}, id="twice")
        assert "ids are used once" in shared.wait("twice")["error"]["message"]
        other.execute("ROLLBACK")
        other.close()
        for one in waits:
            shared.notify("$/cancelRequest", {"id": one})
        assert all(shared.wait(one)["result"]["ok"] for one in saves)
        assert shared.ask("document:text", projectId="slow", documentId="d19")["text"] == "第59稿"
        assert shared.ask("project:delete", projectId="slow") == {"documents": 20}

    def test_an_id_may_be_used_again_once_it_was_answered(self, shared: IpcProcess) -> None:
        for count in range(1, 31):
            shared.send("rag:config:get", {}, id="again")
            assert shared.wait_for_answers("again", count)[-1]["result"]["ok"]

    def test_wrong_requests_are_refused_and_the_next_is_served(self, shared: IpcProcess) -> None:
        complaints = len(shared.complaints)
        bad = [b"hello\n", b"{]\n", b'[{"jsonrpc":"2.0"}]\n', b'{"jsonrpc":"2.0","id":{},"method":"x"}\n', b"\xff\n"]
        shared.raw(b"".join(bad))
        for complaint in shared.wait_for_complaints(complaints + len(bad))[complaints:]:
            assert complaint["error"]["data"]["code"] == "INVALID_ARGUMENT"
        assert shared.call("nothing:here")["error"]["code"] == "NOT_FOUND"
        assert shared.call("embedding:search", ["novel", "q"])["error"]["code"] == "INVALID_ARGUMENT"
        assert shared.call("embedding:search", {"projectId": "novel"})["error"]["code"] == "INVALID_ARGUMENT"
        shared.raw(b'{"jsonrpc":"2.0","id":"mine","result":{}}\n')
        shared.notify("initialized", {})
        shared.notify("$/cancelRequest", {"id": 123456})
        shared.notify("$/cancelRequest")
        assert shared.ask("project:list")["projects"][0]["projectId"] == "novel"

    @pytest.mark.parametrize(
        "params",
        [
            b'{"projectId": "novel", "query": "x", "minScore": NaN}',
            b'{"query": "\xb5\xc6\xcb\xfe"}',
            b"{",
            b"[" * 50_000,
        ],
    )
    def test_a_request_that_is_not_json_is_answered_under_its_id(self, shared: IpcProcess, params: bytes) -> None:
        shared.raw(b'{"jsonrpc": "2.0", "id": "wrong", "method": "embedding:search", "params": %s}\n' % params)
        answer = shared.wait("wrong")
        assert (answer["error"]["code"], answer["error"]["data"]["code"]) == (-32700, "INVALID_ARGUMENT")

    def test_what_comes_without_an_id_is_not_done_and_the_log_says_so(self, tmp_path: Path) -> None:
        with IpcProcess(tmp_path / "data") as ipc:
            ipc.initialize()
            ipc.notify("document:save", {"projectId": "p", "documentId": "d", "text": "灯塔"})
            assert ipc.ask("document:list", projectId="p") == {"documents": []}
        assert b"document:save came without an id and was not done" in ipc.stderr

    def test_a_message_that_is_too_long_is_refused_by_its_id(self, shared: IpcProcess) -> None:
        text = "长" * 600_000
        answer = shared.wait(shared.send("document:save", {"projectId": "p", "documentId": "d", "text": text}))
        assert "1048576 bytes" in answer["error"]["message"]
        assert shared.ask("document:list", projectId="p") == {"documents": []}

    def test_half_a_surrogate_pair_goes_in_and_comes_out(self, shared: IpcProcess) -> None:
        shared.raw(
            b'{"jsonrpc":"2.0","id":"half","method":"document:save",'
            b'"params":{"projectId":"half","documentId":"d","text":"a \\ud83d b"}}\n'
        )
        assert shared.wait("half")["result"]["ok"]
        assert shared.ask("document:text", projectId="half", documentId="d")["text"] == "a \ud83d b"
        shared.ask("project:delete", projectId="half")


def test_an_editor_that_sends_headers_gets_headers_and_may_leave_in_the_middle(tmp_path: Path) -> None:
    with IpcProcess(tmp_path / "data", framing="headers") as process:
        process.initialize()
        process.ask("document:save", projectId="笔记", documentId="一", text="灯塔 lighthouse 😀")
        [found] = process.ask("search:fts:query", projectId="笔记", query="灯塔")["results"]
        assert found["documentId"] == "一"
        process.raw(b'Content-Length: 1000\r\n\r\n{"jsonrpc":"2.0","id":5,"method":"document:save"')
        process.end_input()
        assert process.ended() == 0


def test_too_many_requests_are_pushed_back_and_may_be_sent_again(tmp_path: Path, api: LoopbackApi) -> None:
    data = not_yet_embedded(tmp_path, api)
    over = threading.Event()
    api.always = Fault(text=lambda answer: answer if over.wait(600) else "")
    with IpcProcess(data, "--max-pending", "4") as process:
        process.initialize()
        sent = process.send_all([("embedding:generate", {"texts": [f"text {number}"]}) for number in range(12)])
        # The first ones wait for the model until the others were told.
        for one in sent[4:]:
            process.wait(one)
        over.set()
        envelopes = [process.wait(one)["result"] for one in sent]
        pushed = [one for one in envelopes if not one["ok"]]
        assert len(pushed) == 8
        assert {one["error"]["code"] for one in pushed} == {"BACKPRESSURE"}
        assert pushed[0]["error"]["details"]["limit"] == 4
        assert process.call("embedding:generate", {"texts": ["again"]})["ok"]


class TestReindex:
    def test_canceled_in_the_middle_it_stops_and_goes_on_where_it_was(self, tmp_path: Path, api: LoopbackApi) -> None:
        api.always = Fault(delay=1.0)
        with IpcProcess(not_yet_embedded(tmp_path, api)) as process:
            process.initialize()
            request = process.send("embedding:reindex", {"projectId": "novel", "batchSize": 8})
            process.wait_for_progress(request)
            # Searching goes on meanwhile.
            assert process.ask("search:fts:query", projectId="novel", query="灯塔")["results"]
            process.notify("$/cancelRequest", {"id": request})
            assert process.wait(request)["result"]["error"]["code"] == "CANCELED"
            told = len(process.progress(request))
            api.always = None
            again = process.send("embedding:reindex", {"projectId": "novel", "batchSize": 16})
            data = process.wait(again)["result"]["data"]
            assert (data["documents"], data["chunks"], data["pending"]) == (1, PARAGRAPHS, 0)
            assert process.progress(again) == sorted(process.progress(again))
            assert process.progress(again)[-1] == (PARAGRAPHS, PARAGRAPHS)
            assert len(process.progress(request)) == told
            assert process.answers(request) == 1
        texts = embedded_texts(api)
        assert len(texts) == len(set(texts)) == PARAGRAPHS

    def test_a_second_one_waits_and_can_be_canceled_before_it_begins(self, tmp_path: Path, api: LoopbackApi) -> None:
        api.always = Fault(delay=0.5)
        with IpcProcess(not_yet_embedded(tmp_path, api)) as process:
            process.initialize()
            first, second = process.send_all([("embedding:reindex", {"batchSize": 32})] * 2)
            process.notify("$/cancelRequest", {"id": second})
            assert process.wait(second)["result"]["error"]["code"] == "CANCELED"
            assert process.wait(first)["result"]["ok"]


def test_whatever_prints_does_not_reach_the_protocol(tmp_path: Path) -> None:
    """A library that prints, in Python or past it, and one that reads our input."""
    noisy = """
import os, sys
from homing.embedders.local import LocalProvider
embed = LocalProvider.embed
def loud(self, texts, **options):
    print("loading the model …")
    sys.__stdout__.write("100 %"); sys.__stdout__.flush()
    os.write(1, b"from C\\n")
    os.system("echo from a child; cat >/dev/null")
    assert sys.stdin.read() == ""
    return embed(self, texts, **options)
LocalProvider.embed = loud
from homing.cli.main import run
run()
"""
    with IpcProcess(tmp_path / "data", command=(sys.executable, "-c", noisy)) as process:
        process.initialize()
        assert process.ask("embedding:generate", texts=["灯塔"])["dimensions"] == 384
        process.end_input()
        assert process.ended() == 0
        assert b"from C" in process.stderr
        assert b"from a child" in process.stderr
    assert process.complaints == []


def test_a_folder_that_cannot_be_opened_is_an_error_of_every_request_and_no_crash(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "homing.db").write_bytes(b"this is not a database, whatever its name says" * 100)
    with IpcProcess(tmp_path / "data") as process:
        process.initialize()
        envelope: dict[str, Any] = process.call("document:list", {"projectId": "p"})
        assert envelope["error"]["code"] == "STORE_CORRUPT"
        assert "Traceback" not in envelope["error"]["message"]


def test_a_wrong_setting_ends_it_with_a_message_on_standard_error(tmp_path: Path) -> None:
    (tmp_path / "homing.toml").write_text('[embedding]\nprovider = "nonsense"\n', encoding="utf-8")
    with IpcProcess(tmp_path / "data") as process:
        assert process.ended() == 3
        assert b"CONFIG_INVALID" in process.stderr


def test_the_command_prints_the_schemas() -> None:
    done = run(["ipc", "schema"])
    told = json.loads(done.stdout)
    assert told["protocolVersion"] == 1
    assert set(told["channels"]) >= {"embedding:generate", "rag:config:update", "search:fts:query", "document:save"}
    assert told["$defs"]["EmbeddingSearchRequest"]["additionalProperties"] is False
