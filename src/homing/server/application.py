"""`create_app`: everything that can be reached over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from homing.app import Homing
from homing.errors import HomingError
from homing.server.admission import Admission
from homing.server.entrance import Entrance
from homing.server.failures import ERRORS, answer_failure, answer_http, answer_invalid
from homing.server.openai_api import openai_router
from homing.server.routes import devices, health, rag, search, skills
from homing.server.service import Service

ROUTERS = (health.router, search.router, skills.router, rag.router, devices.router)


def create_app(app: Homing) -> FastAPI:
    """The server over an open data folder, which stays the caller's to close after the server has stopped.

    Run it with any ASGI server; `homing serve` does, and sets up logging. Its lifespan must run.
    """
    from homing import __version__

    service = Service(app)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(service.start)
        yield
        await run_in_threadpool(service.close)

    served = FastAPI(
        title="Homing",
        version=__version__,
        summary="One retrieval engine for agents and apps, bilingual and offline by default.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    served.state.service = service
    for router in ROUTERS:
        served.include_router(router, responses=ERRORS)
    served.include_router(openai_router(app))
    served.add_exception_handler(HomingError, answer_failure)
    served.add_exception_handler(RequestValidationError, answer_invalid)
    served.add_exception_handler(HTTPException, answer_http)
    # The last to be added is the first to see a request.
    served.add_middleware(Admission, service=service)
    served.add_middleware(Entrance, metrics=service.metrics)
    return served
