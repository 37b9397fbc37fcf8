"""A path means one thing: `/skills/search` is the search, never a skill of that name.

Patterns overlap where names may hold slashes. The one that is declared first owns a path, and so its methods.
"""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter, HTTPException, Request
from fastapi.routing import APIRoute


class Methods:
    """The methods of all routes of some routers."""

    def __init__(self, routers: Iterable[APIRouter]) -> None:
        self._routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]

    def of(self, path: str) -> list[str]:
        """The methods that a path can be called with, by name; none where nothing is there."""
        owner = next((route.path for route in self._routes if route.path_regex.match(path)), None)
        return sorted({method for route in self._routes if route.path == owner for method in route.methods or ()})


async def check_method(request: Request) -> None:
    """Refuses a method that only a pattern further down would take."""
    if request.method not in request.app.state.methods.of(request.scope["path"]):
        raise HTTPException(405, "Method Not Allowed")
