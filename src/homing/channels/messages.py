"""Operations as channels: their inputs and outputs under the names that desktop apps know, which are camelCase.

What a channel takes is checked by a model that is the operation's own under other names; what it gives is written out
the same way. Times (`updated_at`) are whole milliseconds, as `Date.now()` counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from homing.channels.envelope import codes
from homing.operations import OPERATIONS, Operation
from homing.operations.models import Output

PROTOCOL_VERSION = 1
"""Grows when a client that was written before would break; what is only added leaves it as it is."""
TIME = "_at"
"""How the name of a field ends that is a time."""


@dataclass(frozen=True, slots=True)
class BoundChannel:
    """A channel: the operation behind it, what a client sends and what it gets."""

    name: str
    operation: Operation
    request: type[BaseModel]
    response: type[BaseModel]

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        return self.operation.scope != "read"

    @property
    def description(self) -> str:
        """What it is for, in a sentence or two."""
        return " ".join(self.operation.description.split())

    @property
    def lane(self) -> Callable[[Any], str] | None:
        """Gives the lane of a request, where there are any."""
        return None if self.operation.channel is None else self.operation.channel.lane


def as_message(value: Any) -> Any:
    """An answer of an operation as a channel gives it."""
    if isinstance(value, BaseModel):
        kind = type(value)
        return {
            _spelled(kind, name): round(one * 1000) if name.endswith(TIME) else as_message(one)
            for name, one in ((name, getattr(value, name)) for name in kind.model_fields)
        }
    if isinstance(value, list) and value and isinstance(value[0], BaseModel):
        return [as_message(one) for one in value]
    return value


def _spelled(kind: type[Any], name: str) -> str:
    names: Mapping[str, str] = kind.channel_names
    return names.get(name) or to_camel(name)


def _renamed(kind: type[BaseModel], name: str) -> type[BaseModel]:
    """The same model under the names of the channel."""
    config = ConfigDict(alias_generator=partial(_spelled, kind))
    return type(name, (kind,), {"model_config": config, "__doc__": kind.__doc__, "__module__": __name__})


@cache
def _response(kind: type[Output], name: str) -> type[BaseModel]:
    changed: dict[str, Any] = {}
    for field, info in kind.model_fields.items():
        carried = int if field.endswith(TIME) else _carried(info.annotation)
        if field.endswith(TIME):
            info = Field(description="Milliseconds since 1970, as Date.now() counts.")
        if carried != info.annotation:
            changed[field] = (carried, info)
    return create_model(name, __base__=_renamed(kind, name), __doc__=kind.__doc__, __module__=__name__, **changed)


def _carried(annotation: Any) -> Any:
    """A type, with the models in it under the names of the channel."""
    if isinstance(annotation, type) and issubclass(annotation, Output):
        own = annotation.__name__
        return _response(annotation, f"{own.removesuffix('Out')}Entry" if own.endswith("Out") else own)
    inside = tuple(NoneType if one is NoneType else _carried(one) for one in get_args(annotation))
    if get_origin(annotation) in (Union, UnionType):
        return Union[inside]  # noqa: UP007
    return list[inside[0]] if get_origin(annotation) is list else annotation  # type: ignore[valid-type]


def _bound(operation: Operation, name: str) -> BoundChannel:
    title = "".join(part.capitalize() for part in name.split(":"))
    request, response = _renamed(operation.input, f"{title}Request"), _response(operation.output, f"{title}Response")
    return BoundChannel(name, operation, request, response)


CHANNELS: Mapping[str, BoundChannel] = {
    one.channel.name: _bound(one, one.channel.name) for one in OPERATIONS.values() if one.channel is not None
}
"""The channels by name."""


def schemas() -> dict[str, Any]:
    """Every channel with its request and response, all definitions in `$defs`, defaults included."""
    wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = []
    for channel in CHANNELS.values():
        wanted += [(channel.request, "validation"), (channel.response, "serialization")]
    _, definitions = models_json_schema(wanted, by_alias=True, ref_template="#/$defs/{model}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Homing channels",
        "protocolVersion": PROTOCOL_VERSION,
        "channels": {
            name: {
                "description": channel.description,
                "request": {"$ref": f"#/$defs/{channel.request.__name__}"},
                "response": {"$ref": f"#/$defs/{channel.response.__name__}"},
                "reportsProgress": channel.operation.pace == "long",
            }
            for name, channel in CHANNELS.items()
        },
        "$defs": {**definitions["$defs"], **_envelope()},
    }


def _envelope() -> dict[str, Any]:
    details = {"type": "object", "additionalProperties": True, "description": "Plain data for programs."}
    fields = {
        "code": {"$ref": "#/$defs/ErrorCode"},
        "message": {"type": "string", "description": "What failed, on what, and what to do next."},
        "details": details,
    }
    return {
        "ErrorCode": {"enum": codes(), "description": "Stable; programs may rely on it.", "type": "string"},
        "ChannelError": {
            "type": "object",
            "description": "Why a request could not be served.",
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
        },
    }
