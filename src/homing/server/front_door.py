"""What a connection may do before there is a request: how many there are, how long their headers are and how late.

A caller that opens connections and sends nothing, or sends slowly, costs a place among connections and nothing else;
when places run out, the connection that has been idle for longest makes room.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from homing.config import ServerSettings
from homing.errors import ConfigError, HeadersTooLarge, HomingError, Overloaded, RequestTimeout
from homing.server.failures import failed

GRACE = 5.0
"""Seconds that a body may be late beyond its time: who reads bodies says so before the connection is closed."""
LINGER = 1.0
"""Seconds in which what a refused caller still sends is thrown away."""
RESERVED = 64
"""Descriptors that are not for connections: databases, models, files."""


class Door:
    """The connections of one server, the oldest first."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.most = min(settings.connections, _descriptors())
        self._trusted = trusted_networks(settings.trusted_proxies)
        self._open: dict[Connection, str] = {}
        self._of_address: Counter[str] = Counter()

    def enter(self, connection: Connection, address: str) -> None:
        """Let a connection in. Raises Overloaded where there is no room, and none can be made."""
        limit = self.settings.connections_per_address
        if self._of_address[address] >= limit and not self._is_proxy(address):
            raise Overloaded(f"this address has {limit} connections already; close some", retry_after=1)
        if len(self._open) >= self.most:
            idle = next((one for one in self._open if one.is_idle), None)
            if idle is None:
                raise Overloaded("there are too many connections; come back in a moment", retry_after=1)
            self.leave(idle)
            idle.transport.abort()
        self._open[connection] = address
        self._of_address[address] += 1

    def leave(self, connection: Connection) -> None:
        """A connection has ended."""
        address = self._open.pop(connection, None)
        if address is not None:
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]

    def _is_proxy(self, address: str) -> bool:
        try:
            return any(ip_address(address) in network for network in self._trusted)
        except ValueError:
            return False


def trusted_networks(given: tuple[str, ...]) -> list[Any]:
    """The networks of `server.trusted_proxies`. Raises ConfigError for what is no address."""
    try:
        return [ip_network(one, strict=False) for one in given]
    except ValueError as error:
        raise ConfigError(f"server.trusted_proxies: {error}; name addresses or networks, as in 10.0.0.0/8") from None


def _descriptors() -> int:
    """How many connections this process has descriptors for."""
    try:
        import resource
    except ImportError:
        return 1 << 20
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY:
        return 1 << 20
    return max(4, soft - RESERVED if soft >= 4 * RESERVED else soft // 4)


class Connection(HttpToolsProtocol):
    """One connection. Its headers and its body have their time; what is too much is refused before anything is made."""

    door: Door
    _timer: asyncio.TimerHandle | None = None
    _before_headers = True
    _received = 0
    _refused = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way: no request whose headers are there, no answer that is not complete."""
        return self._before_headers and not self._is_answering

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody came."""
        super().connection_made(transport)
        try:
            self.door.enter(self, self.client[0] if self.client else "")
        except HomingError as error:
            self._refuse(error)
            return
        self._wait(self.door.settings.header_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        """Somebody left."""
        self._stop_waiting()
        self.door.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes. Headers that do not end are refused while they come: nothing keeps them."""
        if self._refused:
            return
        if self._before_headers:
            self._received += len(data)
            if self._timer is None:
                self._wait(self.door.settings.header_timeout)
        super().data_received(data)
        if self._before_headers and self._received > self.door.settings.header_bytes and not self._refused:
            self._refuse(self._too_large())

    def on_headers_complete(self) -> None:
        """A request begins."""
        settings = self.door.settings
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > settings.header_bytes or len(self.headers) > settings.header_count:
            self._refuse(self._too_large())
            return
        self._before_headers, self._received = False, 0
        self._wait(settings.body_timeout + GRACE)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of a body."""
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is complete."""
        if not self._refused:
            self._before_headers = True
            self._stop_waiting()
            super().on_message_complete()

    def _too_large(self) -> HeadersTooLarge:
        settings = self.door.settings
        return HeadersTooLarge(
            f"a request has at most {settings.header_count} headers of {settings.header_bytes} bytes together"
        )

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(seconds, self._too_late)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self) -> None:
        self._timer = None
        if self._is_answering:
            # An earlier request, or this one without its body: what is being answered is not cut off.
            self._wait(GRACE)
        elif self._before_headers:
            seconds = self.door.settings.header_timeout
            self._refuse(RequestTimeout(f"the headers did not arrive within {seconds:g} s; send the request again"))
        else:
            self.transport.close()

    def _refuse(self, error: HomingError) -> None:
        self._refused = True
        self._stop_waiting()
        if self._received or not isinstance(error, RequestTimeout):
            answer = failed(error)
            head = [f"HTTP/1.1 {answer.status_code} {HTTPStatus(answer.status_code).phrase}".encode()]
            head += [name + b": " + value for name, value in [*answer.raw_headers, (b"connection", b"close")]]
            self.transport.write(b"\r\n".join(head) + b"\r\n\r\n" + bytes(answer.body))
        if self._received and self.transport.can_write_eof():
            # Closed while something comes in, the connection would be reset and the answer lost.
            self.transport.write_eof()
            self.loop.call_later(LINGER, self.transport.close)
        else:
            self.transport.close()


def front_door(settings: ServerSettings) -> type[Connection]:
    """The connections of a server with these settings. Raises ConfigError."""
    return type("FrontDoor", (Connection,), {"door": Door(settings)})
