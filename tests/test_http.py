"""Answers of providers that would take all memory or all time, for embedders and chat models alike."""

from __future__ import annotations

import gzip
import json
import resource
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from homing.chat import Message
from homing.chat.openai import OpenAILLM
from homing.embedders.openai import OpenAIProvider
from homing.errors import ChatError, EmbeddingError, MalformedAnswer

VECTOR = json.dumps({"data": [{"index": 0, "embedding": [1.0, *[0.0] * 511]}]}).encode()
REPLY = json.dumps({"choices": [{"message": {"content": "灯塔"}}]}).encode()
DEEP = b"[" * 200_000 + b"]" * 200_000


@cache
def packed_zeros(size: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    block = b" " * (1 << 20)
    return b"".join([*(packer.compress(block) for _ in range(size >> 20)), packer.flush()])


@contextmanager
def answering(content: bytes, packing: str = "", status: int = 200) -> Iterator[str]:
    """A server that always answers with this."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            if packing:
                self.send_header("content-encoding", packing)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            try:
                self.wfile.write(content)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def embed(address: str) -> Any:
    with closing(OpenAIProvider("m", base_url=address, dimensions=512)) as provider:
        return provider.embed(["灯塔 lamp"])


def chat(address: str) -> str:
    with closing(OpenAILLM("m", base_url=address)) as model:
        return model.complete([Message("user", "你好 hello")])


def stream(address: str) -> str:
    with closing(OpenAILLM("m", base_url=address)) as model:
        return "".join(model.stream([Message("user", "你好 hello")]))


def cause(ask: Callable[[str], Any], address: str) -> str:
    with pytest.raises((ChatError, EmbeddingError)) as raised:
        ask(address)
    return str(raised.value.details.get("cause", raised.value.code))


@pytest.mark.parametrize("packing", ["gzip", "deflate", "identity"])
def test_a_packed_answer_is_read(packing: str) -> None:
    packings: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress, "identity": bytes}
    packed = packings[packing]
    with answering(packed(VECTOR), packing) as address:
        assert embed(address).shape == (1, 512)
    with answering(packed(REPLY), packing) as address:
        assert chat(address) == "灯塔"


@pytest.mark.slow
@pytest.mark.parametrize("ask", [embed, chat, stream])
@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_that_unpacks_to_a_gigabyte_is_cut_off(ask: Callable[[str], Any], status: int) -> None:
    with answering(packed_zeros(1 << 28), "gzip", status) as address:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert cause(ask, address) == "MALFORMED_ANSWER"
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


@pytest.mark.parametrize("ask", [embed, chat])
def test_json_that_is_deeper_than_anybody_follows_is_a_malformed_answer(ask: Callable[[str], Any]) -> None:
    with answering(DEEP) as address:
        assert cause(ask, address) == "MALFORMED_ANSWER"
    with answering(DEEP, status=500) as address:
        assert cause(ask, address) == "PROVIDER_UNAVAILABLE"
    with answering(b"data: " + DEEP + b"\n\n") as address:
        assert cause(stream, address) == "MALFORMED_ANSWER"


def test_an_answer_packed_in_a_way_that_nobody_asked_for_is_malformed() -> None:
    with answering(b"\x8b", "br") as address, pytest.raises(MalformedAnswer, match="packed as br"):
        embed(address)


def test_a_packed_answer_without_its_end_broke_off() -> None:
    with answering(gzip.compress(VECTOR)[:-20], "gzip") as address, pytest.raises(MalformedAnswer, match="broke off"):
        embed(address)
