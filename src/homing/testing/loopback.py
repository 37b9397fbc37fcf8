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
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from homing.testing.fake import FakeEmbedder

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
        form = next((form for form in _WIRE_FORMATS if form.serves(received.path)), None)
        if form is None:
            return 404, json.dumps({"error": f"nothing at {received.path}"})
        if fault.status is not None:
            return fault.status, fault.body or json.dumps(form.error(fault.status, "told to fail", ""))
        try:
            asked = form.read(received.path, received.headers, received.body, self.key)
        except _Refused as refused:
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


_MODELS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "gemini-embedding-001": 3072,
    "nomic-embed-text": 768,
    "all-minilm": 384,
    "text-embedding-v4": 1024,
    "text-embedding-v2": 1536,
}
"""Models that every loopback API has, with their own width."""


class _Refused(Exception):
    """The API would not take this request."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a request asks for."""

    texts: list[str]
    dimensions: int
    single: bool = False


class _OpenAIFormat:
    """`POST /v1/embeddings`."""

    def serves(self, path: str) -> bool:
        return path == "/v1/embeddings"

    def read(self, path: str, headers: Mapping[str, str], body: Any, key: str) -> _Asked:
        if key and headers.get("authorization") != f"Bearer {key}":
            sent = headers.get("authorization", "").removeprefix("Bearer ")
            raise _Refused(401, f"Incorrect API key provided: {sent}.", "invalid_api_key")
        _only(body, {"input", "model", "encoding_format", "dimensions", "user"}, {"input", "model"})
        if body["model"] not in _MODELS:
            raise _Refused(404, f"The model `{body['model']}` does not exist", "model_not_found")
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        _texts(texts, at_most=2048)
        if body.get("encoding_format", "float") != "float":
            raise _Refused(400, "only encoding_format float is served here")
        if "dimensions" in body and body["model"].endswith("ada-002"):
            raise _Refused(400, "This model does not support specifying dimensions.")
        if max(len(text.encode()) for text in texts) > 33_000:
            raise _Refused(400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded")
        return _Asked(texts, body.get("dimensions", _MODELS[body["model"]]))

    def write(self, asked: _Asked, rows: Rows) -> Any:
        data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
        # The order of the list is not promised; the index is.
        random.Random(len(data)).shuffle(data)
        return {"object": "list", "data": data, "model": "loopback", "usage": {"prompt_tokens": 1, "total_tokens": 1}}

    def error(self, status: int, message: str, code: str) -> Any:
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code or None}}


class _GoogleFormat:
    """`POST /v1beta/models/{model}:embedContent` and `:batchEmbedContents`."""

    _path = re.compile(r"/v1beta/models/([^/:]+):(embedContent|batchEmbedContents)$")

    def serves(self, path: str) -> bool:
        return self._path.match(path) is not None

    def read(self, path: str, headers: Mapping[str, str], body: Any, key: str) -> _Asked:
        match = self._path.match(path)
        assert match is not None
        model, method = match.groups()
        if key and headers.get("x-goog-api-key") != key:
            raise _Refused(400, "API key not valid. Please pass a valid API key.", "API_KEY_INVALID")
        if model not in _MODELS:
            raise _Refused(404, f"models/{model} is not found for API version v1beta.")
        single = method == "embedContent"
        if not single:
            _only(body, {"requests"}, {"requests"})
        requests = [body] if single else body["requests"]
        if not 1 <= len(requests) <= 100:
            raise _Refused(400, "* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch")
        for request in requests:
            _only(request, {"model", "content", "taskType", "title", "outputDimensionality"}, {"model", "content"})
            if request["model"] != f"models/{model}":
                raise _Refused(400, "model of a request differs from the model of the batch")
            if request.get("taskType") not in (None, "RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"):
                raise _Refused(400, "unknown taskType")
        texts = [request["content"]["parts"][0]["text"] for request in requests]
        _texts(texts, at_most=100)
        return _Asked(texts, requests[0].get("outputDimensionality", _MODELS[model]), single=single)

    def write(self, asked: _Asked, rows: Rows) -> Any:
        # The real API normalises only its full width; so does not this one.
        embeddings = [{"values": [2.5 * value for value in row]} for row in rows]
        return {"embedding": embeddings[0] if embeddings else {}} if asked.single else {"embeddings": embeddings}

    def error(self, status: int, message: str, code: str) -> Any:
        names = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}
        error = {"code": status, "message": message, "status": names.get(status, "UNKNOWN")}
        return {"error": error | ({"details": [{"reason": code, "domain": "googleapis.com"}]} if code else {})}


class _OllamaFormat:
    """`POST /api/embed`."""

    def serves(self, path: str) -> bool:
        return path == "/api/embed"

    def read(self, path: str, headers: Mapping[str, str], body: Any, key: str) -> _Asked:
        if key and headers.get("authorization") != f"Bearer {key}":
            raise _Refused(401, "unauthorized")
        _only(body, {"model", "input", "truncate", "options", "keep_alive", "dimensions"}, {"model", "input"})
        if body["model"] not in _MODELS:
            raise _Refused(404, f'model "{body["model"]}" not found, try pulling it first')
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        _texts(texts, at_most=100_000)
        if not body.get("truncate", True) and max(map(len, texts)) > 10_000:
            raise _Refused(400, "the input length exceeds the context length")
        return _Asked(texts, body.get("dimensions", _MODELS[body["model"]]))

    def write(self, asked: _Asked, rows: Rows) -> Any:
        return {"model": "loopback", "embeddings": rows, "total_duration": 1, "load_duration": 1}

    def error(self, status: int, message: str, code: str) -> Any:
        return {"error": message}


class _DashScopeFormat:
    """`POST /api/v1/services/embeddings/text-embedding/text-embedding`."""

    def serves(self, path: str) -> bool:
        return path == "/api/v1/services/embeddings/text-embedding/text-embedding"

    def read(self, path: str, headers: Mapping[str, str], body: Any, key: str) -> _Asked:
        if key and headers.get("authorization") != f"Bearer {key}":
            raise _Refused(401, "Invalid API-key provided.", "InvalidApiKey")
        _only(body, {"model", "input", "parameters"}, {"model", "input"})
        if body["model"] not in _MODELS:
            raise _Refused(400, "Model not exist.", "InvalidParameter")
        parameters = body.get("parameters", {})
        _only(parameters, {"text_type", "dimension", "output_type", "instruct"}, set())
        if parameters.get("text_type") not in (None, "query", "document"):
            raise _Refused(400, "text_type is query or document", "InvalidParameter")
        if "dimension" in parameters and body["model"] == "text-embedding-v2":
            raise _Refused(400, "dimension is not supported by this model", "InvalidParameter")
        texts = body["input"]["texts"]
        _texts(texts, at_most=10)
        if max(len(text.encode()) for text in texts) > 33_000:
            raise _Refused(400, "Range of input length should be [1, 8192]", "InvalidParameter")
        return _Asked(texts, parameters.get("dimension", _MODELS[body["model"]]))

    def write(self, asked: _Asked, rows: Rows) -> Any:
        embeddings = [{"text_index": place, "embedding": row} for place, row in enumerate(rows)]
        return {"output": {"embeddings": embeddings[::-1]}, "usage": {"total_tokens": 1}, "request_id": "loopback"}

    def error(self, status: int, message: str, code: str) -> Any:
        return {"code": code or "InternalError", "message": message, "request_id": "loopback"}


_WIRE_FORMATS = (_OpenAIFormat(), _GoogleFormat(), _OllamaFormat(), _DashScopeFormat())


def _only(body: Any, allowed: set[str], required: set[str]) -> None:
    if not isinstance(body, dict) or set(body) - allowed or required - set(body):
        raise _Refused(400, f"expected an object with {sorted(required)} and nothing beyond {sorted(allowed)}")


def _texts(texts: Any, *, at_most: int) -> None:
    if not isinstance(texts, list) or not 1 <= len(texts) <= at_most:
        raise _Refused(400, f"expected a list of 1 to {at_most} texts")
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise _Refused(400, "input cannot be an empty string")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _Refused(400, "input is not valid Unicode") from None
