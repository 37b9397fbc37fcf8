"""A chat API on this machine: OpenAI's, DashScope's and Ollama's wire formats, and the ways in which they fail."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from homing.testing.loopback import LoopbackApi

Body = Mapping[str, Any]


@dataclass
class ChatServer:
    """Answers with the next of `answers`: a text, a function of the request, or a number that is a status to fail with.

    Like the real ones it refuses a wrong key with 401, and a request without the fields it needs with 400. Asked for a
    stream it sends the answer two characters at a time, `piece_delay` seconds apart, and the second half of it
    when `second_half` is set; `breaks_off` leaves out the end.
    """

    key: str = ""
    answers: list[str | int | Callable[[Body], str]] = field(default_factory=list)
    delay: float = 0.0
    piece_delay: float = 0.0
    second_half: threading.Event | None = None
    breaks_off: bool = False
    refuses_schemas: bool = False
    requests: list[Body] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def __enter__(self) -> ChatServer:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def respond(self, path: str, key: str, body: Body) -> tuple[int, str]:
        self.paths.append(path)
        self.requests.append(body)
        time.sleep(self.delay)
        if key != (f"Bearer {self.key}" if self.key else ""):
            return 401, json.dumps(
                {"error": {"message": f"Incorrect API key provided: {key}", "code": "invalid_api_key"}}
            )
        if not body.get("model") or not body.get("messages"):
            return 400, json.dumps({"error": {"message": "model and messages are required"}})
        form = body.get("response_format", {})
        if form.get("type") == "json_schema" and self.refuses_schemas:
            return 400, json.dumps({"error": {"message": "response_format json_schema is not supported"}})
        if form.get("type") == "json_object" and "json" not in json.dumps(body["messages"]).lower():
            return 400, json.dumps({"error": {"message": "'messages' must contain the word 'json' in some form"}})
        answer = self.answers.pop(0) if self.answers else "{}"
        if isinstance(answer, int):
            return answer, json.dumps({"error": {"message": f"told to fail, Bearer {self.key}"}})
        text = answer if isinstance(answer, str) else answer(body)
        if body.get("stream"):
            return 200, self._streamed(path, text)
        if path.endswith("/api/chat"):
            return 200, json.dumps({"message": {"role": "assistant", "content": text}, "done": True})
        return 200, json.dumps(
            {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
        )

    def _streamed(self, path: str, text: str) -> str:
        pieces = [text[at : at + 2] for at in range(0, len(text), 2)]
        if path.endswith("/api/chat"):
            events = [
                json.dumps({"message": {"content": piece}, "done": False}, ensure_ascii=False) for piece in pieces
            ]
            end = json.dumps({"message": {"content": ""}, "done": True})
            return "".join(f"{event}\n" for event in [*events, *([] if self.breaks_off else [end])])
        first = [{"choices": [{"delta": {"role": "assistant"}}]}]
        deltas = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
        events = [json.dumps(event, ensure_ascii=False) for event in [*first, *deltas, {"choices": [], "usage": {}}]]
        lines = [
            ": keep-alive",
            *(f"data: {event}" for event in events),
            *([] if self.breaks_off else ["data: [DONE]"]),
        ]
        return "".join(f"{line}\n\n" for line in lines)


def _handler(server: ChatServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, text = server.respond(self.path, self.headers.get("authorization", ""), body)
            payload = text.encode()
            try:
                if body.get("stream") and status == 200:
                    self._send_pieces(text)
                    return
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def _send_pieces(self, text: str) -> None:
            self.send_response(200)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            lines = text.split("\n")
            for number, line in enumerate([*lines, None]):
                if number == len(lines) // 2 and server.second_half is not None:
                    assert server.second_half.wait(600)
                piece = b"" if line is None else f"{line}\n".encode()
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                time.sleep(server.piece_delay)

        def log_message(self, *args: object) -> None:
            """Quiet: what a test needs is in `requests`."""

    return Handler


def dashscope_embeddings(key: str) -> LoopbackApi:
    """DashScope's embedding API, as the embedders are tested against it."""
    return LoopbackApi(key=key)
