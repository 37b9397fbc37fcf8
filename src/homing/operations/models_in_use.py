"""Which embedding models there are, and the change from one to another."""

from __future__ import annotations

from pydantic import Field

from homing.app import Homing
from homing.errors import Conflict
from homing.models.switch import SwitchState
from homing.operations.models import Input, Name, Nothing, Output
from homing.operations.operation import Call, Job, operation
from homing.resolve import local_models

TAG = "models"


class ModelOut(Output):
    """A model. Models of this machine are `local`."""

    name: str = Field(examples=["all-MiniLM-L6-v2-zh"])
    provider: str = Field(examples=["local"])
    dimensions: int | None = Field(examples=[384])
    default: bool
    enabled: bool


class ModelList(Output):
    """The models; `in_use` is the identity of the one that embeds, empty where searching is by keywords only.

    `fixed` says that the settings name the model, so that it cannot be changed here.
    """

    in_use: str = Field(examples=["local/all-MiniLM-L6-v2-zh@384"])
    fixed: bool
    models: list[ModelOut]


class ModelChoice(Input):
    """The model to use from now on."""

    name: Name = Field(examples=["all-MiniLM-L6-v2-zh"])
    provider: Name | None = Field(None, description="Where several have a model of that name.", examples=["local"])


class ModelVectors(Output):
    """The vectors of one model in a collection."""

    model: str
    embedded: int
    served: bool


class CollectionOut(Output):
    """A collection and the models whose vectors it holds; one of them serves it."""

    collection: str
    records: int
    models: list[ModelVectors]


class ModelChange(Output):
    """How far a change of the model has come. `finished` is whether every collection answers with the default."""

    default: str
    finished: bool
    running: bool
    target: str
    done: int
    total: int
    seconds_left: float | None
    error: str
    collections: list[CollectionOut]


class ModelChanged(Output):
    """How many collections changed to the default model."""

    collections: int


@operation("read", http="GET /models", tag=TAG)
def list_models(call: Call, asked: Nothing) -> ModelList:
    """List the models on this machine and those that were added."""
    models = call.owner.models
    used = models.identity()
    return ModelList(in_use=used, fixed=models.explicit, models=_models(call.owner, used))


def make_default(call: Call, asked: ModelChoice) -> None:
    """Ask a model once and make it the default; nothing is embedded again yet."""
    app = call.owner
    if app.models.explicit:
        raise Conflict(
            "the settings name the model (embedding.provider, provider_id or model in homing.toml or the environment) "
            "and win over the default; change it there",
            details={"settings": "embedding"},
        )
    app.switch.make_default(app.models.find(asked.name, asked.provider).model)


@operation(
    "admin",
    http="POST /models/default",
    tag=TAG,
    job=Job("switch", lambda asked: asked.name, shared=True, check=make_default),
    may_miss=True,
)
def change_default_model(call: Call, asked: ModelChoice) -> ModelChanged:
    """Use another model from now on. A job embeds everything again with it, while searches go on."""
    return ModelChanged(collections=(call.switch or call.owner.switch.run)(call.report))


@operation("read", http="GET /models/switch", tag=TAG)
def get_model_change(call: Call, asked: Nothing) -> ModelChange:
    """Show which model answers for which of your data, and how far a change has come."""
    status = call.app.switch.status()
    state = status.state or SwitchState("", 0, 0, False, None, "")
    return ModelChange.of(
        state,
        default=status.default,
        finished=status.finished,
        running=state.running and not status.finished,
        collections=[CollectionOut.of(one) for one in status.collections],
    )


def _models(app: Homing, used: str) -> list[ModelOut]:
    listed = {
        ("local", one.name): ModelOut.of(one, provider="local", default=used == one.identity, enabled=True)
        for one in local_models(app.settings)
    }
    providers = {one.id: one for one in app.models.providers()}
    for model in app.models.configured():
        provider = providers[model.provider_id].name
        listed.setdefault(
            (provider, model.model_key),
            ModelOut(
                name=model.model_key,
                provider=provider,
                dimensions=model.model_config.dimensions,
                default=model.is_default and not app.models.explicit,
                enabled=model.enabled and providers[model.provider_id].enabled,
            ),
        )
    return list(listed.values())
