"""`create_app`: everything that can be reached over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import Scope

from homing.app import Homing
from homing.errors import ConfigError, HomingError
from homing.server.addresses import Addresses, Methods, check_method
from homing.server.authentication import PAGE, PAGE_FOLDER, PUBLIC, Authentication
from homing.server.binding import operations_router
from homing.server.direct import Direct
from homing.server.failures import answer_failure, answer_http, answer_invalid, errors_of
from homing.server.limits import BodyLimit, ConcurrencyLimit
from homing.server.log_lines import HEADER
from homing.server.mcp_endpoint import mcp_endpoint
from homing.server.openai_api import openai_router
from homing.server.origin_check import OriginCheck, is_loopback
from homing.server.request_log import RequestLog
from homing.server.routes import files, health, ipc, jobs, page
from homing.server.routes.map import router as map_router
from homing.server.service import Service
from homing.server.shared import Share
from homing.server.tokens import Tokens

ROUTERS = (
    health.router,
    health.counters,
    operations_router(),
    files.router,
    jobs.router,
    ipc.router,
    map_router,
    page.router,
)

FILES = frozenset(route.path for route in files.router.routes if isinstance(route, APIRoute))
OPEN = (health.router, page.router)
BEARER = HTTPBearer(
    auto_error=False, description="A token of `homing tokens create`; a server on loopback without tokens needs none."
)
"""For the description of the API; who may come in is decided before any route is reached."""


def create_app(app: Homing, *, exposed: bool | None = None, share: Share | None = None) -> FastAPI:
    """The server over an open data folder, which stays the caller's to close after the server has stopped.

    Run it with any ASGI server; `homing serve` does, and sets up logging. Its lifespan must run. `exposed` says that
    others than this machine can reach it, so that everybody needs a token; by default `server.host` decides. `share`
    says which of several workers this is. Raises ConfigError where it is exposed and there is no token.
    """
    from homing import __version__

    if exposed is None:
        exposed = not is_loopback(app.settings.server.host)
    if exposed and not Tokens.exist(app.existing_database):
        raise ConfigError(
            f"{app.settings.server.host} can be reached by others, and there is no token; "
            "create one with `homing tokens create`, or listen on 127.0.0.1"
        )
    service = Service(app, exposed=exposed, share=share)
    endpoint = mcp_endpoint(service.stopping.is_set)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(service.start)
        try:
            async with endpoint.running():
                yield
        finally:
            await run_in_threadpool(service.close)

    served = FastAPI(
        title="Homing",
        version=__version__,
        summary="One retrieval engine for agents and apps, bilingual and offline by default.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(check_method)],
        generate_unique_id_function=lambda route: route.name,
    )
    served.state.service = service
    settings = service.settings
    openai = openai_router(app)
    routers = (*ROUTERS, openai)
    for router in routers:
        for route in router.routes:
            if isinstance(route, APIRoute):
                route.summary = _first_sentence(route.description)
                if router is not openai:
                    route.responses = {**route.responses, **errors_of(route)}
        served.include_router(router, dependencies=[] if router in OPEN else [Depends(BEARER)])
    methods = served.state.methods = Methods(routers)
    served.router.routes.append(Route("/mcp", endpoint=endpoint, include_in_schema=False))
    served.add_exception_handler(HomingError, answer_failure)
    served.add_exception_handler(RequestValidationError, answer_invalid)
    served.add_exception_handler(HTTPException, answer_http)
    # The last to be added is the first to see a request.
    served.add_middleware(Direct, service=service, methods=methods)
    served.add_middleware(ConcurrencyLimit, settings=settings, metrics=service.metrics, exempt=_lasts_or_is_light)
    served.add_middleware(BodyLimit, most=settings.max_body, seconds=settings.body_timeout)
    served.add_middleware(Addresses)
    served.add_middleware(Authentication, service=service)
    if settings.cors_origins:
        served.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["authorization", "content-type", HEADER],
            expose_headers=[HEADER],
        )
    served.add_middleware(OriginCheck, settings=settings, exposed=exposed)
    served.add_middleware(RequestLog, metrics=service.metrics)
    return served


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0].removesuffix(".")


def _lasts_or_is_light(scope: Scope) -> bool:
    path: str = scope["path"]
    # Files have turns of their own, so that who sends many of them keeps nobody else waiting.
    if path in FILES:
        return True
    if path == "/mcp":
        # The library refuses a body that is about something else.
        return Headers(scope=scope).get("mcp-method") == "subscriptions/listen"
    streams = scope["method"] == "GET" and path.startswith("/jobs/") and path.endswith("/events")
    return streams or path == "/metrics" or path in PUBLIC or path in PAGE or path.startswith(PAGE_FOLDER)
