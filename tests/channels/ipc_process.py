"""A real `homing ipc` process and somebody who speaks with it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from homing.ipc.framing import Framing, MessageReader, Received, framed
from tests.forked import Process, start

PATIENCE = 120.0


class IpcProcess:
    """Sends and waits; what comes without having been asked for is kept in `notifications` and `complaints`."""

    def __init__(
        self,
        data: Path,
        *options: str,
        framing: Framing = "lines",
        command: tuple[str, ...] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.notifications: list[dict[str, Any]] = []
        self.complaints: list[dict[str, Any]] = []
        self.stderr = b""
        self._framing = framing
        self._answers: dict[int | str, list[dict[str, Any]]] = {}
        self._news = threading.Condition()
        self._last = 0
        arguments = ["-v", "ipc", "--data", str(data), *options]
        given: dict[str, Any] = {"cwd": data.parent, "env": {**os.environ, **(environ or {})}}
        given |= {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self._process: Process = (
            subprocess.Popen([*command, *arguments], **given) if command else start(arguments, **given)
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._reader = MessageReader(self._process.stdout, 1 << 30)
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._log)]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def raw(self, data: bytes) -> None:
        self._stdin.write(data)
        self._stdin.flush()

    def send(self, method: str, params: Any = None, *, id: int | str | None = None) -> int | str:  # noqa: A002
        """Send a request; returns its id."""
        self._last += 1
        used = self._last if id is None else id
        self._write({"jsonrpc": "2.0", "id": used, "method": method, "params": params})
        return used

    def send_all(self, requests: Sequence[tuple[str, Any]]) -> list[int]:
        """Send requests in one piece, so that none is answered before the last was sent; returns their ids."""
        sent = [(self._last + at, method, params) for at, (method, params) in enumerate(requests, start=1)]
        self._last += len(sent)
        told = [{"jsonrpc": "2.0", "id": used, "method": method, "params": params} for used, method, params in sent]
        self.raw(b"".join(framed(json.dumps(one).encode(), self._framing) for one in told))
        return [used for used, _, _ in sent]

    def notify(self, method: str, params: Any = None) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def wait(self, request: int | str, timeout: float = PATIENCE) -> dict[str, Any]:
        """The response to a request."""
        with self._news:
            assert self._news.wait_for(lambda: request in self._answers, timeout), (request, self.stderr[-2000:])
            return self._answers[request][0]

    def wait_for_answers(self, request: int | str, count: int) -> list[dict[str, Any]]:
        """All responses to an id, once there are so many."""
        with self._news:
            assert self._news.wait_for(lambda: len(self._answers.get(request, [])) >= count, PATIENCE)
            return list(self._answers[request])

    def answers(self, request: int | str) -> int:
        """How many responses a request got so far."""
        with self._news:
            return len(self._answers.get(request, []))

    def wait_for_progress(self, request: int | str, timeout: float = PATIENCE) -> None:
        with self._news:
            assert self._news.wait_for(lambda: bool(self._progress(request)), timeout), self.stderr[-2000:]

    def progress(self, request: int | str) -> list[tuple[int, int]]:
        with self._news:
            return self._progress(request)

    def wait_for_complaints(self, count: int) -> list[dict[str, Any]]:
        with self._news:
            assert self._news.wait_for(lambda: len(self.complaints) >= count, PATIENCE), self.complaints
            return self.complaints

    def call(self, method: str, params: Any = None) -> dict[str, Any]:
        """The envelope that a channel answers with."""
        answer = self.wait(self.send(method, params))
        assert "error" not in answer, answer
        envelope: dict[str, Any] = answer["result"]
        return envelope

    def ask(self, channel: str, **payload: Any) -> dict[str, Any]:
        """The data that a channel answers with."""
        envelope = self.call(channel, payload)
        assert envelope["ok"], envelope
        data: dict[str, Any] = envelope["data"]
        return data

    def initialize(self) -> Self:
        assert self.call("initialize", {"protocolVersion": 1})["protocolVersion"] == 1
        return self

    def end_input(self) -> None:
        self._stdin.close()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def ended(self, timeout: float = PATIENCE) -> int:
        """The exit code, once the process has ended."""
        code = self._process.wait(timeout)
        for thread in self._threads:
            thread.join(PATIENCE)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self.ended()
            for stream in (self._process.stdout, self._process.stderr):
                assert stream is not None
                stream.close()

    def _write(self, message: Mapping[str, Any]) -> None:
        self.raw(framed(json.dumps(message, ensure_ascii=False).encode(), self._framing))

    def _progress(self, request: int | str) -> list[tuple[int, int]]:
        told = [one["params"] for one in self.notifications if one["method"] == "$/progress"]
        return [(one["done"], one["total"]) for one in told if one["id"] == request]

    def _read(self) -> None:
        while (received := self._reader.read()) is not None:
            assert isinstance(received, Received), received
            message = json.loads(received.body)
            with self._news:
                if "method" in message:
                    self.notifications.append(message)
                elif message["id"] is None:
                    self.complaints.append(message)
                else:
                    self._answers.setdefault(message["id"], []).append(message)
                self._news.notify_all()

    def _log(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.stderr += line
