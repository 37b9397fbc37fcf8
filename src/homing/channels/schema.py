"""The contract as JSON Schema, for whoever writes a client."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from homing.channels.envelope import codes
from homing.channels.messages import CHANNELS

PROTOCOL_VERSION = 1
"""Grows when a client that was written before would break; what is only added leaves it as it is."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, Any]:
    """Every channel with its request and response, all definitions in `$defs`, defaults included."""
    wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = []
    for channel in CHANNELS.values():
        wanted += [(channel.request, "validation"), (channel.response, "serialization")]
    _, definitions = models_json_schema(wanted, by_alias=True, ref_template="#/$defs/{model}")
    return {
        "$schema": DIALECT,
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
