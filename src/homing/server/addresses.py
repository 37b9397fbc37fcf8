"""Names in a path: whole, in UTF-8, and with anything in them that a name may hold."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from starlette.convertors import PathConvertor
from starlette.types import ASGIApp, Receive, Scope, Send

from homing.errors import InvalidArgument


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
            address = scope.get("raw_path", b"") + b"?" + scope.get("query_string", b"")
            try:
                unquote_to_bytes(address).decode()
            except UnicodeDecodeError:
                raise InvalidArgument("the address is not UTF-8; percent-encode names in it as UTF-8") from None
        await self._app(scope, receive, send)
