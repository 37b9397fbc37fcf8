"""Messages on a stream of bytes: where one ends and the next begins, and how they go out.

Two ways are understood, message by message: a message on a line of its own, and a `Content-Length` header before it, as
editors send them to a language server. Bytes that are neither are reported and passed over up to the next line.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Literal

from homing.channels.envelope import as_json

log = logging.getLogger(__name__)

Framing = Literal["lines", "headers"]

_HEADER = re.compile(rb"\s*(content-length|content-type)\s*:\s*(.*?)\s*$", re.IGNORECASE)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_HEADER = 8192
_MOST_HEADERS = 16
_PIECE = 65536
_HEAD = 256


@dataclass(frozen=True, slots=True)
class Received:
    """A message as it came."""

    body: bytes
    framing: Framing


@dataclass(frozen=True, slots=True)
class Rejected:
    """Bytes that were passed over: why, and how the message began where it was one."""

    reason: str
    head: bytes = b""


class MessageReader:
    """Cuts a stream into messages of at most `max_bytes`; what is longer is read past, never kept."""

    def __init__(self, stream: IO[bytes], max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = max_bytes

    def read(self) -> Received | Rejected | None:
        """The next message, or what was passed over; None at the end. Half a message at the end is dropped."""
        while line := self._stream.readline(self._max_bytes + 1):
            start = line.removeprefix(_BYTE_ORDER_MARK).lstrip()
            if not start:
                continue
            if len(line) > self._max_bytes and not line.endswith(b"\n"):
                self._skip_line()
                return self._too_long("a line", start)
            if start[:1] in (b"{", b"["):
                return Received(start, "lines")
            if _HEADER.match(line):
                return self._after_header(line)
            return Rejected("bytes that are neither JSON nor a Content-Length header")
        return None

    def _after_header(self, line: bytes) -> Received | Rejected | None:
        length: int | None = None
        for _ in range(_MOST_HEADERS):
            header = _HEADER.match(line)
            if header is None:
                return Rejected("a header that is not Content-Length or Content-Type")
            if header[1].lower() == b"content-length":
                if not re.fullmatch(rb"\d{1,18}", header[2]):
                    return Rejected("a Content-Length that is not a number of bytes")
                length = int(header[2])
            line = self._stream.readline(_LONGEST_HEADER)
            if not line.strip():
                return self._body(length)
        return Rejected("more headers than a message has")

    def _body(self, length: int | None) -> Received | Rejected | None:
        if length is None:
            return Rejected("headers without a Content-Length")
        if length > self._max_bytes:
            head = self._stream.read(min(_HEAD, length))
            self._skip(length - len(head))
            return self._too_long(f"{length} bytes", head)
        body = self._stream.read(length)
        if len(body) < length:
            log.warning("the stream ended in the middle of a message: %d of %d bytes came", len(body), length)
            return None
        return Received(body, "headers")

    def _too_long(self, what: str, head: bytes) -> Rejected:
        return Rejected(f"{what} of more than the {self._max_bytes} bytes a message may have", head[:_HEAD])

    def _skip_line(self) -> None:
        while (piece := self._stream.readline(_PIECE)) and not piece.endswith(b"\n"):
            continue

    def _skip(self, length: int) -> None:
        while length > 0 and (piece := self._stream.read(min(_PIECE, length))):
            length -= len(piece)


def framed(body: bytes, framing: Framing) -> bytes:
    """A message as it goes out. `body` has no line break in it."""
    if framing == "lines":
        return body + b"\n"
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


class Wire:
    """The way out: whole messages, one at a time, in the framing that the client speaks.

    Safe to send on from several threads; blocks while the client does not read.

    When nobody reads any more, `broken` is called once and everything after that goes nowhere.
    """

    def __init__(self, stream: IO[bytes], *, broken: Callable[[], None]) -> None:
        self.framing: Framing = "lines"
        self._stream = stream
        self._broken = broken
        self._gone = False
        self._lock = threading.Lock()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; it has left this process when this returns."""
        body = as_json(message)
        with self._lock:
            if self._gone:
                return
            try:
                self._stream.write(framed(body, self.framing))
                self._stream.flush()
                return
            except (OSError, ValueError) as error:
                self._gone = True
                log.warning("the client does not read any more: %s", error)
        self._broken()
