"""Who may come in: every request gets its caller here, or is refused."""

from __future__ import annotations

from contextlib import ExitStack

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from homing.errors import StoreError, Unauthorized
from homing.operations.operation import Scope as Reach
from homing.server.access import Caller
from homing.server.service import Service
from homing.server.users import OWNER

PAGE = frozenset({"/", "/favicon.ico", "/docs"})
PAGE_FOLDER = "/page/"
PUBLIC = frozenset({"/health", "/openapi.json"})


class Authentication:
    """Finds out who asks, counts it, and hands in the app of that user.

    A server on loopback that has no tokens takes everybody for its owner. As soon as it has one, or where others can
    reach it, everything that holds data needs a token; what is public holds none.
    """

    def __init__(self, app: ASGIApp, *, service: Service) -> None:
        self._app = app
        self._service = service
        # A database server is waited for in a thread: nobody else's request should wait with it.
        self._remote = service.app.keeps_users_apart

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            identity = await run_in_threadpool(self._identify, scope) if self._remote else self._identify(scope)
        except StoreError:
            # Without the database nobody can say who they are; how the server does is told all the same.
            if scope["path"] not in PUBLIC:
                raise
            identity = None
        if identity is None:
            await self._app(scope, receive, send)
            return
        user, reach = identity
        users = self._service.users
        with ExitStack() as held:
            lease = users.lease(user)
            if users.is_open(user):
                app = held.enter_context(lease)
            else:
                app = await run_in_threadpool(held.enter_context, lease)
            caller = Caller(user, reach, app, self._service)
            scope.setdefault("state", {})["caller"] = caller
            await self._app(scope, receive, send)

    def _identify(self, scope: Scope) -> tuple[str, Reach] | None:
        """User and reach; None for who asks for something public without a token."""
        address = (scope.get("client") or ("unknown", 0))[0]
        if scope["path"] in PAGE or scope["path"].startswith(PAGE_FOLDER):
            # Two dozen files at once, which hold nobody's data and are not counted.
            return None if self._service.needs_token else (OWNER, "admin")
        kind, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        given = given.strip() if kind.casefold() == "bearer" else ""
        if not self._service.needs_token:
            self._service.count(address)
            return OWNER, "admin"
        if not given:
            self._service.count(address)
            if scope["path"] in PUBLIC:
                return None
            raise Unauthorized("this server needs a token; send it as `Authorization: Bearer hmg_…`")
        try:
            token = self._service.tokens.check(given)
        except Unauthorized:
            # Guessing is limited like asking.
            self._service.count(address)
            raise
        self._service.count(f"token {token.id}")
        return token.user, token.scope
