"""What goes beyond calls: prompts, completions, questions to the person, logs, and news of what changed.

Each in both forms of the protocol: with a handshake ("legacy"), and without ("auto", since 2026).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    ElicitResult,
    PromptReference,
    ResourceListChangedNotification,
    ResourceTemplateReference,
    ResourceUpdatedNotification,
    TextContent,
)

import homing
from homing.mcp import mcp_server
from homing.operations.addresses import DOCUMENT, SKILL
from homing.testing.fake import FakeEmbedder
from tests.mcp.furnished import assert_progress, folders_with_work, run_apart

BOTH = pytest.mark.parametrize("mode", ["legacy", "auto"])


def ask(server: Any, mode: Any, what: Callable[[Client], Awaitable[Any]], **more: Any) -> Any:
    async def run() -> Any:
        async with Client(server, mode=mode, read_timeout_seconds=300, **more) as client:
            try:
                return await what(client)
            except Exception as error:
                return error

    found = run_apart(run)
    if isinstance(found, Exception):
        raise found
    return found


def text_of(message: Any) -> str:
    assert isinstance(message.content, TextContent)
    return message.content.text


@BOTH
def test_prompts_bring_what_was_found_fenced_as_data(server: Any, mode: str) -> None:
    async def what(client: Client) -> tuple[set[str], str, str, str]:
        names = {one.name for one in (await client.list_prompts()).prompts}
        notes = await client.get_prompt("answer_from_notes", {"question": "谁守着灯塔？", "project": "小说"})
        skill = await client.get_prompt("use_a_skill", {"task": "帮我写提交信息"})
        known = await client.get_prompt("what_is_known", {"about": "灯塔"})
        return names, text_of(notes.messages[0]), text_of(skill.messages[0]), text_of(known.messages[0])

    names, notes, skill, known = ask(server, mode, what)
    assert names == {"answer_from_notes", "use_a_skill", "what_is_known"}
    assert "谁守着灯塔？" in notes
    assert "他一个人守着灯塔" in notes.partition("<homing-data-")[2]
    assert "git --amend" not in notes
    assert "git-commit" in skill
    assert "Subject: 灯塔" in known


def test_a_prompt_that_cannot_be_filled_is_an_error_with_a_code(server: Any) -> None:
    async def what(client: Client) -> Any:
        return await client.get_prompt("answer_from_notes", {"question": " "})

    with pytest.raises(MCPError):
        ask(server, "auto", what)


@BOTH
def test_names_are_completed(server: Any, mode: str) -> None:
    async def what(client: Client) -> list[list[str]]:
        document, skill = ResourceTemplateReference(uri=DOCUMENT), ResourceTemplateReference(uri=SKILL)
        prompt = PromptReference(name="answer_from_notes")
        asked: list[tuple[Any, dict[str, str], dict[str, str] | None]] = [
            (skill, {"name": "skill", "value": "COMM"}, None),
            (skill, {"name": "skill", "value": ""}, None),
            (document, {"name": "project", "value": "小"}, None),
            (document, {"name": "document", "value": "第"}, {"project": "小说"}),
            (document, {"name": "document", "value": "git"}, {"project": "小说"}),
            (document, {"name": "document", "value": ""}, None),
            (prompt, {"name": "project", "value": "man"}, None),
            (prompt, {"name": "question", "value": "x"}, None),
        ]
        return [(await client.complete(ref, one, context)).completion.values for ref, one, context in asked]

    assert ask(server, mode, what) == [
        ["git-commit"],
        ["git-commit", "weather-report"],
        ["小说"],
        ["第一章"],
        [],
        ["git", "第一章"],
        ["manuals"],
        [],
    ]


@BOTH
@pytest.mark.parametrize(
    ("action", "answer", "decision"),
    [("accept", "卧室的", "act"), ("accept", "the bedroom one", "act"), ("accept", " ", "ask"), ("decline", "", "ask")],
)
def test_a_question_about_a_device_is_put_to_the_person(
    server: Any, mode: str, action: Any, answer: str, decision: str
) -> None:
    questions: list[str] = []

    async def reply(context: Any, params: Any) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action=action, content={"answer": answer} if action == "accept" else None)

    async def what(client: Client) -> Any:
        return (await client.call_tool("find_devices", {"text": "打开灯"})).structured_content

    found = ask(server, mode, what, elicitation_callback=reply)
    assert found["decision"] == decision
    assert found["devices"] == (["light.bedside"] if decision == "act" else [])
    assert questions == ["您指的是哪一个？可选：客厅灯、床头灯。"]


@BOTH
@pytest.mark.parametrize(("answer", "decision"), [("好的", "act"), ("yes", "act"), ("不要", "refuse")])
def test_what_unlocks_is_confirmed_by_the_person(tmp_path: Path, mode: str, answer: str, decision: str) -> None:
    questions: list[str] = []

    async def reply(context: Any, params: Any) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action="accept", content={"answer": answer})

    async def what(client: Client) -> Any:
        return (await client.call_tool("find_devices", {"text": "打开大门锁"})).structured_content

    with homing.open(tmp_path / "data", embedder=FakeEmbedder()) as app:
        app.devices.replace({"devices": [{"id": "lock.gate", "name": "大门锁", "type": "lock", "room": "玄关"}]})
        found = ask(mcp_server(app), mode, what, elicitation_callback=reply)
    assert (found["decision"], len(questions)) == (decision, 1)


@BOTH
def test_a_client_that_cannot_ask_gets_the_question(server: Any, mode: str) -> None:
    async def what(client: Client) -> Any:
        return (await client.call_tool("find_devices", {"text": "打开灯"})).structured_content

    found = ask(server, mode, what)
    assert found["decision"] == "ask"
    assert found["question"].startswith("您指的是哪一个？")


@BOTH
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_what_a_call_logs_reaches_who_asked_for_it(tmp_path: Path, mode: str) -> None:
    from homing.errors import ProviderUnavailable

    heard: list[tuple[str, str | None]] = []

    async def log(params: Any) -> None:
        heard.append((params.level, params.logger))

    def call_at(level: Any) -> Callable[[Client], Awaitable[Any]]:
        async def what(client: Client) -> None:
            if mode == "legacy" and level:
                await client.set_logging_level(level)
            await client.call_tool("recall", {"query": "灯塔"})

        return what

    with homing.open(tmp_path, embedder=FakeEmbedder(64, fail_with=ProviderUnavailable("down"))) as app:
        app.memory.remember("knowledge", "灯塔")
        server = mcp_server(app)
        for level in (None, "emergency"):
            ask(server, mode, call_at(level), logging_callback=log, log_level=level)
        assert heard == []
        ask(server, mode, call_at("warning"), logging_callback=log, log_level="warning")
    assert ("warning", "homing.engine.search") in heard
    assert {level for level, _ in heard} <= {"warning", "error", "critical"}
    assert not any(type(one).__name__ == "CallLog" for one in logging.getLogger("homing").handlers)


@BOTH
def test_a_scan_and_an_import_tell_how_far_they_are(tmp_path: Path, mode: str) -> None:
    folders_with_work(tmp_path)
    with homing.open(tmp_path / "data", embedder=FakeEmbedder(32)) as app:
        assert_progress(tmp_path, mcp_server(app), mode)


@BOTH
def test_an_import_that_is_taken_back_ends(tmp_path: Path, mode: str) -> None:
    (tmp_path / "notes").mkdir()
    for number in range(200):
        (tmp_path / "notes" / f"{number}.md").write_text(f"灯塔 {number}", encoding="utf-8")
    with homing.open(tmp_path / "data", embedder=FakeEmbedder(32)) as app:

        async def what(client: Client) -> int:
            with anyio.CancelScope() as scope:

                async def stop(progress: float, total: float | None, message: str | None) -> None:
                    scope.cancel()

                asked = {"folder": str(tmp_path / "notes"), "project": "notes"}
                await client.call_tool("import_documents", asked, progress_callback=stop)
            assert scope.cancelled_caught
            return len((await client.list_tools()).tools)

        assert ask(mcp_server(app), mode, what) == 11
        assert len(app.documents.documents("notes")) < 200


@pytest.fixture
def changing(tmp_path: Path) -> Any:
    with homing.open(tmp_path, embedder=FakeEmbedder(64)) as app:
        app.documents.save("小说", "第一章", "他守着灯塔。")
        yield app


UPDATED = "homing://documents/%E5%B0%8F%E8%AF%B4/%E7%AC%AC%E4%B8%80%E7%AB%A0"


def test_a_listener_hears_what_changes(changing: homing.Homing) -> None:
    async def what(client: Client) -> list[str]:
        heard = []
        with anyio.fail_after(120):
            async with (
                client.listen(resources_list_changed=True, resource_subscriptions=[UPDATED]) as events,
                anyio.create_task_group() as beside,
            ):
                # Changed until it is heard: nobody knows when the first look was.
                beside.start_soon(change_again_and_again, changing)
                async for event in events:
                    heard.append(type(event).__name__)
                    if {"ResourceUpdated", "ResourcesListChanged"} <= set(heard):
                        break
                beside.cancel_scope.cancel()
        return heard

    heard = ask(mcp_server(changing, interval=0.02), "auto", what)
    assert set(heard) == {"ResourceUpdated", "ResourcesListChanged"}


async def change_again_and_again(app: homing.Homing) -> None:
    number = 0
    while True:
        number += 1
        app.documents.save("小说", "第一章", f"他守着灯塔，第 {number} 年。")
        app.documents.save("小说", f"新章 {number}", "海鸥。")
        await anyio.sleep(0.1)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_a_subscriber_of_the_earlier_protocol_hears_it_too(changing: homing.Homing) -> None:
    heard: list[Any] = []

    async def what(client: Client) -> None:
        await client.list_resources()
        await client.subscribe_resource(UPDATED)
        with anyio.fail_after(120):
            async with anyio.create_task_group() as beside:
                beside.start_soon(change_again_and_again, changing)
                while {ResourceUpdatedNotification, ResourceListChangedNotification} - {type(one) for one in heard}:
                    await anyio.sleep(0.02)
                beside.cancel_scope.cancel()
        await client.unsubscribe_resource(UPDATED)

    async def note(message: Any) -> None:
        heard.append(message)

    ask(mcp_server(changing, interval=0.02), "legacy", what, message_handler=note)
    updated = {one.params.uri for one in heard if isinstance(one, ResourceUpdatedNotification)}
    assert updated == {UPDATED}, "only what was subscribed to"


def test_capabilities_say_what_there_is(server: Any) -> None:
    async def what(client: Client) -> Any:
        return client.server_capabilities

    modern, legacy = ask(server, "auto", what), ask(server, "legacy", what)
    for one in (modern, legacy):
        assert one.completions is not None
        assert one.prompts is not None
        assert one.resources.subscribe
    assert legacy.logging is not None
