"""JSON-RPC 2.0: what a message says, and how answers are written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Id = int | str

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
NOT_INITIALIZED = -32002
PROTOCOL_MISMATCH = -32000

# Only where the id stands first, before anything of the caller's own: elsewhere it could be somebody else's.
_ID_FIRST = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(?:(-?\d{1,15})|"([^"\\]{1,128})")\s*[,}]'
)


class ProtocolFault(Exception):
    """A message that is not what JSON-RPC or the handshake asks for; answered with a JSON-RPC error."""

    def __init__(
        self, message: str, number: int = INVALID_REQUEST, code: str = "INVALID_ARGUMENT", **details: Any
    ) -> None:
        super().__init__(message)
        self.number = number
        self.code = code
        self.details = details
        self.id: Id | None = None

    def to(self, request_id: Id | None) -> ProtocolFault:
        """The same, as the answer to the request with that id."""
        self.id = request_id
        return self

    def answer(self) -> dict[str, Any]:
        """The error response; `data` has the stable code, as the errors of channels do."""
        data = {"code": self.code, "details": self.details}
        return {"jsonrpc": "2.0", "id": self.id, "error": {"code": self.number, "message": str(self), "data": data}}


@dataclass(frozen=True, slots=True)
class Call:
    """A method that somebody calls; without an id it is a notification and gets no answer."""

    method: str
    params: Any
    id: Id | None


def read_call(body: bytes) -> Call | None:
    """The call in a message; None for the answer to something that was never asked. Raises ProtocolFault."""
    message = _decoded(body)
    if isinstance(message, list):
        raise ProtocolFault("batches are not taken; send the requests one by one, they are worked on at the same time")
    if not isinstance(message, dict):
        raise ProtocolFault("a message is a JSON object")
    if "method" not in message and ("result" in message or "error" in message):
        return None
    request_id = message.get("id")
    if "id" in message and (isinstance(request_id, bool) or not isinstance(request_id, int | str)):
        raise ProtocolFault("id is a whole number or a text")
    method = message.get("method")
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
        said = 'a request has "jsonrpc": "2.0", an "id", a "method" that is a text, and "params"'
        raise ProtocolFault(said).to(request_id)
    return Call(method, message.get("params"), request_id)


def id_at_head(head: bytes) -> Id | None:
    """The id of a message of which only the beginning is known; None where it does not come first."""
    found = _ID_FIRST.match(head)
    if found is None:
        return None
    return int(found[1]) if found[1] else found[2].decode("utf-8", "replace")


def result(request_id: Id, value: Any) -> dict[str, Any]:
    """The answer to a call."""
    return {"jsonrpc": "2.0", "id": request_id, "result": value}


def notification(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Something that is told without having been asked."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        message = error.msg if isinstance(error, json.JSONDecodeError) else "not UTF-8, too deep, or not a JSON value"
        # Whoever waits for the answer to this hears of it, where the id can be seen.
        raise ProtocolFault(f"the message is not JSON: {message}", PARSE_ERROR).to(id_at_head(body)) from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
