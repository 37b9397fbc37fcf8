"""`homing memory` as people and programs meet it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from homing.engine import Engine
from homing.engine.batch import Retries
from homing.engine.worker import WorkerOptions
from homing.errors import EmbeddingError
from homing.memory import Memory
from homing.stores.registry import open_store
from homing.testing.fake import FakeEmbedder
from tests.cli.shell import Shell

pytestmark = pytest.mark.slow

KEYWORDS_ONLY = {"HOMING_EMBEDDING__PROVIDER": ""}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_what_is_remembered_is_recalled_across_languages_and_can_be_forgotten(shell: Shell) -> None:
    told = shell.json("memory", "remember", "账单每月一号结算", "--tag", "钱", "--category", "billing")
    assert shell.json("memory", "list")["waiting"] == 0
    assert told["tags"] == ["钱"]
    shell("memory", "remember", "the garden has an old tree")
    found = shell.json("memory", "recall", "when are invoices due?", "-n", "1")
    assert [hit["text"] for hit in found["hits"]] == ["账单每月一号结算"]
    assert found["hits"][0]["score"] > 0.5
    assert 0 < found["hits"][0]["cosine"] < 1
    assert shell.json("memory", "forget", "knowledge", told["id"]) == {"forgotten": 1}
    assert [hit["text"] for hit in shell.json("memory", "recall", "账单")["hits"]] == ["the garden has an old tree"]


def test_sessions_and_collections_narrow_what_is_recalled_and_listed(shell: Shell) -> None:
    for session in ("s1", "s2"):
        shell("memory", "remember", f"账单 of {session}", "--in", "observation", "--session", session, **KEYWORDS_ONLY)
    shell("memory", "remember", "--in", "learning", stdin="账单 from standard input", **KEYWORDS_ONLY)
    found = shell.json("memory", "recall", "账单", "--session", "s1", **KEYWORDS_ONLY)
    assert [hit["text"] for hit in found["hits"]] == ["账单 of s1"]
    found = shell.json("memory", "recall", "账单", "--in", "learning", "--in", "knowledge", **KEYWORDS_ONLY)
    assert [hit["text"] for hit in found["hits"]] == ["账单 from standard input"]
    counts = shell.json("memory", "list")["counts"]
    assert counts == {"knowledge": 0, "observation": 2, "reflection": 0, "learning": 1}
    listed = shell("memory", "list", "observation", "--session", "s2").stdout
    assert "账单 of s2" in listed
    assert "s1" not in listed


def test_the_same_text_is_remembered_once_and_forgotten_by_its_number(shell: Shell) -> None:
    assert "homing memory remember" in shell("memory", "list").stdout
    twice = [shell.json("memory", "remember", "用户不吃辣", "--tag", tag)["id"] for tag in ("food", "taste")]
    other = shell.json("memory", "remember", "用户不吃辣", "--session", "s1")["id"]
    shell("memory", "remember", "the user likes tea", "--in", "observation")
    assert twice[0] == twice[1] != other
    listed = shell.json("memory", "list")["entries"]
    assert [(one["text"], one["tags"]) for one in listed] == [
        ("the user likes tea", []), ("用户不吃辣", []), ("用户不吃辣", ["taste"]),
    ]  # fmt: skip
    shown = shell("memory", "list").stdout
    assert [number for line in shown.splitlines() if (number := line[2:3]).isdigit()] == ["1", "2", "3"]
    refused = shell("memory", "forget", "3", stdin="n\n")
    assert (refused.returncode, "用户不吃辣" in refused.stderr) == (1, True)
    assert shell.json("memory", "forget", "3", "--yes") == {"forgotten": 1}
    assert [one["id"] for one in shell.json("memory", "list")["entries"]][1:] == [other]


def test_what_was_kept_without_a_model_is_filled_in_later(shell: Shell) -> None:
    shell("memory", "remember", "账单每月一号结算", **KEYWORDS_ONLY)
    checks = {finding["check"]: finding for finding in shell.json("doctor")["findings"]}
    assert checks["collection knowledge"]["mend"] == "homing memory reindex"
    assert shell.json("memory", "reindex") == {"queued": 1, "waiting": 0}
    assert shell.json("memory", "recall", "when are invoices due?")["hits"][0]["score"] > 0.5


def test_the_queue_shows_what_was_given_up_and_tries_it_again(shell: Shell, tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'data' / 'homing.db'}")
    broken = FakeEmbedder(fail_with=EmbeddingError("cannot embed this"))
    engine = Engine(store, broken, options=WorkerOptions(retries=Retries(attempts=1)))
    Memory(engine).remember("knowledge", "账单每月一号结算", entry_id="k1")
    engine.close()
    store.close()
    shown = shell("memory", "queue").stdout
    assert "knowledge k1" in shown
    assert "cannot embed" in shown
    told = shell.json("memory", "queue", "--retry")
    assert (told["retried"], told["backlog"]["waiting"], told["dead_letters"]) == (1, 0, [])
    assert shell.json("memory", "recall", "账单")["hits"][0]["id"] == "k1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["remember", "x", "--in", "dreams"], "known: knowledge, observation, reflection, learning"),
        (["remember", "  "], "the text is empty"),
        (["recall", ""], "the query is empty"),
        (["recall", "x", "--mode", "magic"], "known: semantic, hybrid, keyword"),
        (["recall", "x", "--max-distance", "9"], "max distance should be less than or equal to 2"),
        (["forget", "knowledge", "nobody"], "homing memory list"),
    ],
)
def test_bad_input_says_what_to_do(shell: Shell, arguments: list[str], message: str) -> None:
    done = shell("memory", *arguments, "--json", **KEYWORDS_ONLY)
    assert done.returncode == 3
    assert message in json.loads(done.stdout)["error"]["message"]


def test_a_model_without_its_key_keeps_nobody_from_remembering(shell: Shell) -> None:
    without = {
        "HOMING_EMBEDDING__PROVIDER_ID": "x",
        "HOMING_EMBEDDING__MODEL": "text-embedding-3-small",
        "HOMING_PROVIDERS__X__TYPE": "openai",
        "HOMING_PROVIDERS__X__API_KEY": "${HOMING_TEST_NOT_SET}",
    }
    told = shell.json("memory", "remember", "账单每月一号结算", **without)
    assert shell.json("memory", "list", **without)["waiting"] == 1
    found = shell.json("memory", "recall", "账单", **without)
    assert [hit["id"] for hit in found["hits"]] == [told["id"]]
    assert (found["degraded"], found["reason"]) == (True, "vector:MODEL_NOT_READY")
    assert shell.json("memory", "list", "knowledge", **without)["entries"][0]["text"] == "账单每月一号结算"
    queue = shell.json("memory", "queue", **without)
    assert "HOMING_TEST_NOT_SET" in queue["backlog"]["error"]
    findings = {one["check"]: one for one in json.loads(shell("doctor", "--json", **without).stdout)["findings"]}
    assert "HOMING_TEST_NOT_SET" in findings["embedding"]["detail"]
    assert shell.json("memory", "forget", "knowledge", told["id"], **without) == {"forgotten": 1}
