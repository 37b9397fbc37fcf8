"""The example chat: it remembers from one run to the next, and keeps two people apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.loopback import ChatServer
from tests.forked import run_python

EXAMPLE = Path(__file__).parents[2] / "examples" / "chat_memory.py"

pytestmark = pytest.mark.slow


def chat(folder: Path, said: str, *arguments: str) -> list[str]:
    done = run_python([str(EXAMPLE), "--data", str(folder), *arguments], cwd=folder, stdin=said)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_was_said_is_remembered_the_next_time(tmp_path: Path) -> None:
    assert chat(tmp_path, "我对花生过敏\n") == ["记住了 / I will remember that."]
    [answer] = chat(tmp_path, "what am I allergic to?\n")
    assert answer == "我记得 / I remember: 我对花生过敏"
    assert chat(tmp_path, "what am I allergic to?\n", "--session", "somebody else")[0].startswith("记住了")


def test_a_real_model_gets_the_memory_in_its_system_prompt_and_streams(tmp_path: Path) -> None:
    chat(tmp_path, "我对花生过敏\n")
    with ChatServer(key="sk-test", answers=["花生。"]) as server:
        options = ("--openai", "m", "--url", server.url + "/v1", "--key", "sk-test")
        assert chat(tmp_path, "what am I allergic to?\n", *options) == ["花生。"]
    system, question = server.requests[0]["messages"]
    assert "我对花生过敏" in system["content"]
    assert question["content"] == "what am I allergic to?"
    assert server.requests[0]["stream"] is True
