"""A real HTTP server on this machine that speaks the embedding APIs, for tests without a network.

    with LoopbackApi(key="sk-test") as api:
        provider = OpenAIProvider("text-embedding-3-small", api_key="sk-test", base_url=api.url + "/v1")
        provider.embed(["打开灯"])
        assert api.requests[0].body["input"] == ["打开灯"]

It answers at `/v1/embeddings` (OpenAI), `/v1beta/models/…` (Gemini), `/api/embed` (Ollama) and
`/api/v1/services/embeddings/…` (DashScope), is as strict about what it is sent as they are, and refuses in their words.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from homing.testing.fake import FakeEmbedder
from homing.testing.wire_formats import WIRE_FORMATS, Refused

Rows = list[list[float]]


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it came in; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request; what is not set stays right.

    `delay` waits before answering. `status` (with `headers` and `body`) refuses. `rows` changes the vectors of an
    answer. `text` changes the finished answer. `half` sends half of it and hangs up; `drip` sends it byte by byte,
    that many seconds apart; `hang_up` closes the connection without an answer.
    """

    delay: float = 0.0
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    rows: Callable[[Rows], Rows] | None = None
    text: Callable[[str], str] | None = None
    half: bool = False
    drip: float = 0.0
    hang_up: bool = False


class LoopbackApi:
    """The server; runs while the `with` block does.

    Put faults into `faults` and the next requests meet them, one each; set `always` and every request meets that one.
    `requests` lists what came in, and `most_at_once` is how many were under way together. `port` is free by default;
    the one of a server that has ended brings it back at its address.
    """

    def __init__(self, *, key: str = "", always: Fault | None = None, port: int = 0) -> None:
        self.key = key
        self.always = always
        self.faults: list[Fault] = []
        self.requests: list[Received] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True)

    @property
    def url(self) -> str:
        """The address without a path and without a slash at its end."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> LoopbackApi:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _begin(self, received: Received) -> Fault:
        with self._lock:
            self.requests.append(received)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            return self.faults.pop(0) if self.faults else self.always or Fault()

    def _end(self) -> None:
        with self._lock:
            self._at_once -= 1

    def _answer(self, received: Received, fault: Fault) -> tuple[int, str]:
        form = next((form for form in WIRE_FORMATS if form.serves(received.path)), None)
        if form is None:
            return 404, json.dumps({"error": f"nothing at {received.path}"})
        if fault.status is not None:
            return fault.status, fault.body or json.dumps(form.error(fault.status, "told to fail", ""))
        try:
            asked = form.read(received.path, received.headers, received.body, self.key)
        except Refused as refused:
            return refused.status, json.dumps(form.error(refused.status, str(refused), refused.code))
        rows: Rows = FakeEmbedder(asked.dimensions).embed(asked.texts).tolist()
        return 200, json.dumps(form.write(asked, fault.rows(rows) if fault.rows else rows))


def _handler(api: LoopbackApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body are written apart; Nagle's algorithm would hold the second back.
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            # Asked as a proxy it gets the whole address in place of the path.
            received = Received(urlsplit(self.path).path, headers, json.loads(content))
            fault = api._begin(received)
            try:
                time.sleep(fault.delay)
                if fault.hang_up:
                    self.close_connection = True
                    return
                status, text = api._answer(received, fault)
                self._send(status, fault.text(text) if fault.text else text, fault)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
            finally:
                api._end()

        def _send(self, status: int, text: str, fault: Fault) -> None:
            content = text.encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            for name, value in fault.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if fault.half:
                self.wfile.write(content[: len(content) // 2])
                self.close_connection = True
            elif fault.drip:
                for byte in content:
                    self.wfile.write(bytes([byte]))
                    time.sleep(fault.drip)
            else:
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the overridden method
            """Says nothing: what came in is in `requests`."""

    return Handler
