"""What every channel answers with: `{ok: true, data}` or `{ok: false, error: {code, message, details}}`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from homing.errors import (
    Backpressure,
    Canceled,
    ConfigError,
    EmbeddingError,
    HomingError,
    InvalidArgument,
    MissingExtra,
    NotFound,
    RetrievalFailed,
    StoreError,
)
from homing.operations.problems import MAX_NAME, problem

Envelope = dict[str, Any]

INTERNAL = "INTERNAL"
RAISED_HERE: tuple[type[HomingError], ...] = (
    InvalidArgument,
    NotFound,
    ConfigError,
    MissingExtra,
    EmbeddingError,
    StoreError,
    RetrievalFailed,
    Canceled,
    Backpressure,
)
"""What a channel may raise, and with each all that is below it in the tree."""


def succeeded(data: Mapping[str, Any]) -> Envelope:
    """The envelope of an answer."""
    return {"ok": True, "data": data}


def failed(error: HomingError) -> Envelope:
    """The envelope of an error that Homing raised."""
    return {"ok": False, "error": {"code": error.code, "message": error.message, "details": _plain(error.details)}}


def broken(channel: str) -> Envelope:
    """The envelope of an error that nobody foresaw. It says nothing of the cause, which may hold anything."""
    message = f"{channel} failed inside Homing; its log tells why. Nothing is wrong with the request"
    return {"ok": False, "error": {"code": INTERNAL, "message": message, "details": {"channel": channel}}}


def codes() -> list[str]:
    """Every code that an error of a channel may carry."""
    return sorted({INTERNAL, *(kind.code for kind in kinds())})


def kinds() -> list[type[HomingError]]:
    """Every error that a channel may answer with."""
    return [kind for root in RAISED_HERE for kind in _tree(root)]


def refusal(channel: str, request: type[BaseModel], error: ValidationError) -> InvalidArgument:
    """What is wrong with a payload and what to send; never what was sent."""
    fields = [field.alias or name for name, field in request.model_fields.items()]
    problems = [
        {"field": _path(one["loc"]), "message": _told(one, fields)}
        for one in error.errors(include_input=False, include_url=False)
    ]
    told = "; ".join(" ".join(filter(None, (one["field"], one["message"]))) for one in problems[:5])
    takes = f"it takes {', '.join(fields)}" if fields else "it takes no fields"
    return InvalidArgument(f"{channel}: {told}; {takes}", details={"problems": problems})


def _told(error: ErrorDetails, fields: list[str]) -> str:
    return "the payload is a JSON object" if error["type"] == "model_type" else problem(error, fields).en


def _path(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part)[:MAX_NAME] for part in location)


def _plain(details: Mapping[str, Any]) -> dict[str, Any]:
    """The details as JSON can carry them."""
    plain: dict[str, Any] = json.loads(json.dumps(details, default=str), parse_constant=str)
    return plain


def _tree(kind: type[HomingError]) -> Iterator[type[HomingError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _tree(below)
