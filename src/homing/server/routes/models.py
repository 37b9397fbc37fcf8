"""`/models`: which embedding models there are, and the change from one to another."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field

from homing.app import Homing
from homing.errors import Conflict
from homing.resolve import local_models
from homing.server.access import Administering, Reading
from homing.server.body import Answer, Body, Name
from homing.server.routes.jobs import JobTold, told

router = APIRouter(prefix="/models", tags=["models"])


class ModelTold(Answer):
    """A model. Models of this machine are `local`."""

    name: str = Field(examples=["all-MiniLM-L6-v2-zh"])
    provider: str = Field(examples=["local"])
    dimensions: int | None = Field(examples=[384])
    default: bool
    enabled: bool


class ModelList(Answer):
    """The models; `in_use` is the identity of the one that embeds, empty where searching is by keywords only.

    `fixed` says that the settings name the model, so that it cannot be changed here.
    """

    in_use: str = Field(examples=["local/all-MiniLM-L6-v2-zh@384"])
    fixed: bool
    models: list[ModelTold]


class ModelChoice(Body):
    """The model to use from now on."""

    name: Name = Field(examples=["all-MiniLM-L6-v2-zh"])
    provider: Name | None = Field(None, description="Where several have a model of that name.", examples=["local"])


class SpaceTold(Answer):
    """The vectors of one model in a collection."""

    model: str
    embedded: int
    served: bool


class CollectionTold(Answer):
    """A collection and the models whose vectors it holds; one of them serves it."""

    collection: str
    records: int
    models: list[SpaceTold]


class SwitchTold(Answer):
    """How far a change of the model has come. `finished` is whether every collection answers with the default."""

    default: str
    finished: bool
    running: bool
    target: str
    done: int
    total: int
    seconds_left: float | None
    error: str
    collections: list[CollectionTold]


@router.get("")
def list_models(caller: Reading) -> ModelList:
    """The models of this machine and the ones that were added."""
    app = caller.service.app
    used = app.models.identity()
    return ModelList(in_use=used, fixed=app.models.explicit, models=_models(app, used))


@router.post("/default", status_code=202)
def change_default(body: ModelChoice, caller: Administering) -> JobTold:
    """Use a model from now on. What another one embedded is embedded again by a job, while searches go on."""
    app = caller.service.app
    if app.models.explicit:
        raise Conflict(
            "the settings name the model (embedding.provider, provider_id or model) and win; change it there",
            details={"settings": "embedding"},
        )
    app.switch.make_default(app.models.find(body.name, body.provider).model)
    return told(caller.service.change_model(body.name, caller.user).view)


@router.get("/switch")
def get_switch(caller: Reading) -> SwitchTold:
    """Which model answers where in your data, and how far a change has come."""
    status = caller.app.switch.status()
    state = status.state
    return SwitchTold(
        default=status.default,
        finished=status.finished,
        running=state is not None and state.running and not status.finished,
        target="" if state is None else state.target,
        done=0 if state is None else state.done,
        total=0 if state is None else state.total,
        seconds_left=None if state is None else state.seconds_left,
        error="" if state is None else state.error,
        collections=[
            CollectionTold(
                collection=one.collection,
                records=one.records,
                models=[SpaceTold(model=held.model, embedded=held.embedded, served=held.served) for held in one.models],
            )
            for one in status.collections
        ],
    )


def _models(app: Homing, used: str) -> list[ModelTold]:
    listed = {
        ("local", one.name): ModelTold(
            name=one.name,
            provider="local",
            dimensions=one.dimensions,
            default=used == f"local/{one.name}@{one.dimensions}",
            enabled=True,
        )
        for one in local_models(app.settings)
    }
    providers = {one.id: one for one in app.models.providers()}
    for model in app.models.configured():
        provider = providers[model.provider_id].name
        listed.setdefault(
            (provider, model.model_key),
            ModelTold(
                name=model.model_key,
                provider=provider,
                dimensions=model.model_config.dimensions,
                default=model.is_default and not app.models.explicit,
                enabled=model.enabled and providers[model.provider_id].enabled,
            ),
        )
    return list(listed.values())
