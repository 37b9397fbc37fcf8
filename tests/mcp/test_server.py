"""The server as a guest in a program."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import anyio
import pytest
from mcp import Client

import homing
from homing.app import Homing
from homing.mcp import Access, mcp_server
from tests.mcp.furnished import call, data_of, run_apart


def test_the_logging_of_the_program_is_left_as_it_is(app: Homing) -> None:
    root = logging.getLogger()
    kept = root.handlers[:]
    root.handlers.clear()
    try:
        mcp_server(app)
        assert root.handlers == []
    finally:
        root.handlers[:] = kept


def test_calls_run_beside_each_other_and_off_the_event_loop(app: Homing) -> None:
    both = threading.Barrier(2, timeout=120)

    def meet(request: object) -> Access:
        both.wait()
        return Access(app)

    async def run() -> None:
        async with Client(mcp_server(meet)) as client, anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(client.call_tool, "recall", {"query": "灯"})

    # Each waits for the other: it ends only if neither is in the other's way.
    run_apart(run)
    assert not both.broken


def test_an_error_that_nobody_foresaw_says_nothing_of_itself() -> None:
    def broken(request: object) -> Access:
        raise RuntimeError("the secret is 42")

    answer = call(mcp_server(broken), "recall", query="灯")
    assert answer.is_error
    assert "42" not in str(answer)
    assert "INTERNAL_ERROR" in str(answer)


def test_two_callers_never_see_each_others_data(tmp_path: Path) -> None:
    with homing.open(tmp_path / "a") as mine, homing.open(tmp_path / "b") as theirs:
        turn = iter([mine, theirs, theirs])
        server = mcp_server(lambda request: Access(next(turn)))
        call(server, "remember", text="我的秘密是蓝色")
        assert data_of(call(server, "recall", query="秘密"))["hits"] == []
        assert data_of(call(server, "search_documents", query="秘密"))["hits"] == []


def test_the_server_part_has_it_too() -> None:
    import homing.server

    assert homing.server.mcp_server is mcp_server
    assert callable(homing.server.create_app)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = homing.server.nothing
