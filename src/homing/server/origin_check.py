"""Keeps web pages of other sites from using a server that trusts who can reach it."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from homing.config import ServerSettings
from homing.errors import Forbidden

CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class OriginCheck:
    """Checks Host and Origin.

    A server on loopback answers to names of loopback only: a site whose name was made to point here (DNS rebinding) is
    another name. What changes something is taken from our own page, from origins that the settings allow, and from
    programs, which send no Origin.
    """

    def __init__(self, app: ASGIApp, *, settings: ServerSettings, exposed: bool) -> None:
        self._app = app
        self._hosts = frozenset(host.casefold() for host in settings.allowed_hosts)
        self._origins = frozenset(origin.rstrip("/").casefold() for origin in settings.cors_origins)
        self._any_host = exposed and not self._hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            self._check_host(headers.get("host", ""))
            if scope["method"] in CHANGING:
                self._check_origin(headers)
        await self._app(scope, receive, send)

    def _check_host(self, header: str) -> None:
        host = host_of(header).casefold()
        if not (self._any_host or is_loopback(host) or host in self._hosts):
            raise Forbidden(
                "this server does not answer to that name; add it to server.allowed_hosts if it should",
                details={"host": host[:200]},
            )

    def _check_origin(self, headers: Headers) -> None:
        origin = headers.get("origin")
        if origin is None:
            # Browsers say where a request comes from even where they leave the Origin out.
            if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
                return
        elif origin.casefold() in self._origins or urlsplit(origin).netloc == headers.get("host"):
            return
        raise Forbidden(
            "a web page of another origin may not change anything here; add it to server.cors_origins if it should",
            details={"origin": (origin or "")[:200]},
        )


LOCALHOST = "localhost"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host: `localhost`, 127.0.0.0/8, ::1."""
    name = host.strip("[]").casefold()
    if name == LOCALHOST or name.endswith("." + LOCALHOST):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """The name in a Host header, without its port."""
    if header.startswith("["):
        return header.partition("]")[0][1:]
    return header.rpartition(":")[0] if header.count(":") == 1 else header
