"""What an address means: names in it are whole, in UTF-8, with anything in them that a name may hold, and a path means
one thing. `/skills/search` is the search, never a skill of that name.

Patterns overlap where names may hold slashes. The one that is declared first owns a path, and so its methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, HTTPException, Request
from fastapi.routing import APIRoute
from starlette.convertors import PathConvertor
from starlette.types import ASGIApp, Receive, Scope, Send

from homing.errors import InvalidArgument

REMEMBERED = 1024
"""Paths whose routes are remembered: many are asked for again and again."""


class NameConvertor(PathConvertor):
    """`{document:name}`: the rest of a path. The framework's own `path` ends before a line break."""

    regex = r"[\s\S]*"


class Addresses:
    """Refuses an address that is not UTF-8.

    The framework reads every byte that does not belong as the same mark, so two names in another encoding would be one,
    and saving the second would overwrite the first.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            address: bytes = scope.get("raw_path", b"") + b"?" + scope.get("query_string", b"")
            try:
                if b"%" in address or not address.isascii():
                    unquote_to_bytes(address).decode()
            except UnicodeDecodeError:
                raise InvalidArgument("the address is not UTF-8; percent-encode names in it as UTF-8") from None
        await self._app(scope, receive, send)


@dataclass(frozen=True, slots=True)
class Place:
    """A route, and the names that a path has in its pattern."""

    route: APIRoute
    names: Mapping[str, str]


class Methods:
    """The methods of all routes of some routers."""

    def __init__(self, routers: Iterable[APIRouter]) -> None:
        self._routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
        self._found = lru_cache(REMEMBERED)(self._look_up)

    def of(self, path: str) -> list[str]:
        """The methods that a path can be called with, by name; none where nothing is there."""
        return sorted(self._found(path))

    def route(self, path: str, method: str) -> Place | None:
        """What answers a path that is called with a method."""
        return self._found(path).get(method)

    def _look_up(self, path: str) -> dict[str, Place]:
        owner = next((route.path for route in self._routes if route.path_regex.match(path)), None)
        found: dict[str, Place] = {}
        for route in self._routes:
            if route.path == owner and (match := route.path_regex.match(path)):
                found = dict.fromkeys(route.methods or (), Place(route, match.groupdict())) | found
        return found


async def check_method(request: Request) -> None:
    """Refuses a method that only a pattern further down would take."""
    if request.method not in request.app.state.methods.of(request.scope["path"]):
        raise HTTPException(405, "Method Not Allowed")
