"""What every channel answers with: `{ok: true, data}` or `{ok: false, error: {code, message, details}}`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from homing.errors import (
    Backpressure,
    Canceled,
    ConfigError,
    Conflict,
    EmbeddingError,
    HomingError,
    InvalidArgument,
    MissingExtra,
    NotFound,
    Overloaded,
    RetrievalFailed,
    StoreError,
)

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
    Conflict,
    Overloaded,
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


def as_json(message: Mapping[str, Any]) -> bytes:
    """A message on one line; Chinese as it is, half a surrogate pair as an escape."""
    try:
        return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(message, allow_nan=False, separators=(",", ":")).encode()


def _plain(details: Mapping[str, Any]) -> dict[str, Any]:
    """The details as JSON can carry them."""
    plain: dict[str, Any] = json.loads(json.dumps(details, default=str), parse_constant=str)
    return plain


def _tree(kind: type[HomingError]) -> Iterator[type[HomingError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _tree(below)
