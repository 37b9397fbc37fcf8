"""`/health`: whether the server works. `/metrics`: what it counts, for Prometheus."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import Field

from homing.app import Homing
from homing.embedders.cached import Observed
from homing.embedders.provider import EmbeddingProvider, layers
from homing.embedders.resilient import Resilient
from homing.errors import EmbeddingError, HomingError
from homing.operations.models import Output
from homing.server.access import Caller, Reading
from homing.server.service import Service

router = APIRouter(tags=["health"])
counters = APIRouter(tags=["health"])

State = Literal["ok", "degraded", "failing"]
LASTING = frozenset({"MODEL_NOT_READY", "INVALID_KEY", "MODEL_UNKNOWN", "EMBEDDING_DIMENSION_MISMATCH"})
"""Failures of a model that do not pass by themselves, and have nothing to do with the texts it was given."""


class ModelHealth(Output):
    """The embedding model. `state` is `off` where searching is by keywords only."""

    state: Literal["ok", "unavailable", "off"]
    id: str = Field(examples=["local/all-MiniLM-L6-v2-zh@384"])
    reason: str | None = Field(examples=["PROVIDER_UNAVAILABLE"])


class StoreHealth(Output):
    """The store, and how much waits to be embedded."""

    state: Literal["ok", "failing"]
    reason: str | None = Field(examples=["STORE_UNAVAILABLE"])
    waiting: int
    given_up: int


class Health(Output):
    """Whether the server works: `degraded` answers by keywords, `failing` cannot answer.

    On a server with tokens, those who have none learn `status` and `version` only. `data` is for those who administer
    it: the folder that commands of the shell need to name, null where it is the one they use by themselves.
    """

    status: State
    version: str = Field(examples=["0.1.0"])
    model: ModelHealth | None
    store: StoreHealth | None
    data: str | None = Field(examples=["/srv/homing"])


@router.get("/health", responses={503: {"model": Health, "description": "The store cannot be read."}})
def health(request: Request, response: Response) -> Health:
    """Tell whether the model and the store work. The status is 200 while answers can be given, and 503 otherwise."""
    response.status_code, found = health_of(request.app.state.service, getattr(request.state, "caller", None))
    return found


def health_of(service: Service, caller: Caller | None) -> tuple[int, Health]:
    """How things stand, as much of it as a caller may know, and the status that goes with it."""
    from homing import __version__

    app = service.app if caller is None else caller.app
    model, store = _model(app), _store(app)
    status: State = "failing" if store.state == "failing" else "degraded" if model.state == "unavailable" else "ok"
    shown = caller is not None
    return 503 if status == "failing" else 200, Health(
        status=status,
        version=__version__,
        model=model if shown else None,
        store=store if shown else None,
        data=service.unusual_folder if caller is not None and caller.may("admin") else None,
    )


def _model(app: Homing) -> ModelHealth:
    if not app.models.embeds:
        return ModelHealth(state="off", id="", reason=None)
    try:
        embedder = app.models.provider()
        failure = _failure(embedder)
        return ModelHealth(state="unavailable" if failure else "ok", id=embedder.id, reason=failure)
    except EmbeddingError as error:
        return ModelHealth(state="unavailable", id="", reason=error.code)


def _failure(embedder: EmbeddingProvider) -> str | None:
    """Why the model did not answer when it was last asked; nobody is asked for this."""
    for layer in layers(embedder):
        if isinstance(layer, Resilient) and layer.circuit != "closed":
            return "PROVIDER_UNAVAILABLE"
        if isinstance(layer, Observed) and layer.seen.last_failure in LASTING:
            return layer.seen.last_failure
    return None


def _store(app: Homing) -> StoreHealth:
    try:
        app.store.collections()
        backlog = app.engine.work.backlog()
        return StoreHealth(state="ok", reason=None, waiting=backlog.waiting, given_up=backlog.dead)
    except HomingError as error:
        return StoreHealth(state="failing", reason=error.code, waiting=0, given_up=0)


@counters.get("/metrics", response_class=PlainTextResponse)
def metrics(caller: Reading) -> PlainTextResponse:
    """Counters in the text format of Prometheus."""
    return PlainTextResponse(caller.service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
