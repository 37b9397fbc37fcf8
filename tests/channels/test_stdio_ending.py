"""`homing ipc` as a real process: every way to end."""

from __future__ import annotations

import array
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import IO

import pytest

import homing
from homing.config import EmbeddingSettings, Settings
from homing.testing.loopback import Fault, LoopbackApi
from tests.channels.invoking import NOVEL
from tests.channels.ipc_process import IpcProcess
from tests.channels.unembedded import not_yet_embedded
from tests.forked import COMMAND, start

pytestmark = pytest.mark.slow
PATIENT = ("--grace", "600")
"""However busy the machine is, what is under way may finish."""


def test_at_the_end_of_the_input_everything_is_answered(tmp_path: Path) -> None:
    with IpcProcess(tmp_path / "data", *PATIENT) as process:
        process.initialize()
        saves = [
            process.send("document:save", {"projectId": "p", "documentId": f"d{number}", "text": NOVEL})
            for number in range(20)
        ]
        last = process.send("embedding:reindex", {})
        process.end_input()
        assert process.ended() == 0
        assert all(process.wait(one, 0)["result"]["ok"] for one in saves)
        assert process.wait(last, 0)["result"]["ok"]


def reindexing(process: IpcProcess) -> int | str:
    """The request of a reindex that is under way."""
    process.initialize()
    request = process.send("embedding:reindex", {"batchSize": 4})
    process.wait_for_progress(request)
    return request


def test_shutdown_answers_when_all_is_done_and_exit_ends(tmp_path: Path, api: LoopbackApi) -> None:
    api.always = Fault(delay=1.0)
    with IpcProcess(not_yet_embedded(tmp_path, api), *PATIENT) as process:
        long = reindexing(process)
        short = process.send("embedding:generate", {"texts": ["one more"]})
        answer = process.wait(process.send("shutdown"))
        assert answer["result"] is None
        assert process.wait(long, 0)["result"]["error"]["code"] == "CANCELED"
        assert process.wait(short, 0)["result"]["ok"]
        late = process.wait(process.send("project:list", {}))
        assert late["error"]["data"]["code"] == "SHUTTING_DOWN"
        process.notify("exit")
        assert process.ended() == 0


def test_a_signal_lets_short_requests_finish(tmp_path: Path, api: LoopbackApi) -> None:
    api.always = Fault(delay=1.0)
    with IpcProcess(not_yet_embedded(tmp_path, api), *PATIENT) as process:
        long = reindexing(process)
        saved = process.send("document:save", {"projectId": "novel", "documentId": "new", "text": "最后一句话"})
        short = process.send("embedding:generate", {"texts": ["one more"]})
        # Messages are read in order: when this one is answered, those before it were taken.
        process.ask("rag:config:get")
        process.signal(signal.SIGTERM)
        assert process.ended() == 0
        assert process.wait(saved, 0)["result"]["ok"]
        assert process.wait(short, 0)["result"]["ok"]
        assert process.wait(long, 0)["result"]["error"]["code"] == "CANCELED"
    with homing.open(tmp_path / "data", settings=Settings(embedding=EmbeddingSettings(provider=""))) as app:
        assert app.documents.text("novel", "new") == "最后一句话"


def test_a_signal_ends_it_whichever_thread_takes_it(tmp_path: Path) -> None:
    with IpcProcess(tmp_path / "data", *PATIENT) as process:
        process.initialize()
        threads = (int(one.name) for one in Path(f"/proc/{process.pid}/task").iterdir())
        os.kill(next(one for one in threads if one != process.pid), signal.SIGTERM)
        assert process.ended() == 0


def test_a_client_that_does_not_read_cannot_keep_it_alive(tmp_path: Path) -> None:
    process = start(
        ["ipc", "--grace", "0.5", "--data", str(tmp_path / "data")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdin, process.stdout, process.stderr:
        process.stdin.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n')
        process.stdin.flush()
        process.stdout.readline()
        # Their answers are more than a pipe holds: once it is full, whoever writes is stuck.
        for number in range(1, 40):
            asked = {
                "jsonrpc": "2.0",
                "id": number,
                "method": "embedding:generate",
                "params": {"texts": ["灯"] * 4},
            }
            process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        while waiting_in(process.stdout) < 60_000:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 1
        assert b"still under way" in process.stderr.read()


def test_a_client_that_is_gone_ends_it_even_in_the_middle_of_a_reindex(tmp_path: Path, api: LoopbackApi) -> None:
    api.always = Fault(delay=0.1)
    data = not_yet_embedded(tmp_path, api)
    # The client is a process of its own, and is killed: both ends of its pipes close at once.
    script = f"""
import sys, time
from pathlib import Path
from tests.channels.ipc_process import IpcProcess
process = IpcProcess(Path({str(data)!r}), command={COMMAND!r})
process.initialize()
request = process.send("embedding:reindex", {{"batchSize": 1}})
process.wait_for_progress(request)
print(process.pid, flush=True)
time.sleep(600)
"""
    client = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])},
    )
    assert client.stdout is not None
    server = int(client.stdout.readline())
    client.kill()
    client.wait()
    client.stdout.close()
    end = time.monotonic() + 120
    while is_running(server):
        assert time.monotonic() < end, "homing ipc outlives its client"
        time.sleep(0.05)


def waiting_in(pipe: IO[bytes]) -> int:
    """How many bytes were written and not read yet."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
