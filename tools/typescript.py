"""Writes `clients/typescript/src/channels.ts` from the JSON Schemas of the channels.

`make docs` writes it; a test fails when it is out of date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from homing.channels import schemas

TARGET = Path(__file__).parent.parent / "clients" / "typescript" / "src" / "channels.ts"
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def channels_file() -> str:
    """The whole file."""
    contract = schemas()
    lines = [
        "// Written by tools/typescript.py from the schemas of the channels; `homing ipc schema` prints those.",
        'import type { Shape } from "./check.ts";',
        "",
        "/** The version of the protocol that these types belong to. */",
        f"export const PROTOCOL_VERSION = {contract['protocolVersion']};",
        "",
    ]
    for name, schema in contract["$defs"].items():
        lines += [*definition(name, schema), ""]
    lines += ["/** Every channel with what it takes and what it gives. */", "export interface Channels {"]
    for name, channel in contract["channels"].items():
        lines.append(f"  /** {channel['description']} */")
        lines.append(f'  "{name}": {{ request: {typed(channel["request"])}; response: {typed(channel["response"])} }};')
    lines += ["}", "", "export type ChannelName = keyof Channels;", ""]
    lines += ["/** The channels that tell places in a text, and can count them as JavaScript does. */"]
    lines += ["export const CHANNELS_WITH_OFFSETS = ["]
    lines += [f'  "{name}",' for name in with_offsets(contract)]
    lines += ["] as const satisfies readonly ChannelName[];", ""]
    lines += ["/** The shape of what each channel answers with, by its name in `SHAPES`. */"]
    lines += ["export const RESPONSES: Readonly<Record<ChannelName, string>> = {"]
    lines += [f'  "{name}": "{typed(one["response"])}",' for name, one in contract["channels"].items()]
    lines += ["};", "", "/** What arrives, for the check at run time. */"]
    lines += ["export const SHAPES: Readonly<Record<string, Shape>> = {"]
    lines += [f"  {name}: {json.dumps(shape(one))}," for name, one in arriving(contract).items()]
    lines += ["};"]
    return "\n".join(lines) + "\n"


def definition(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """A named type."""
    if told := schema.get("description"):
        yield f"/** {' '.join(told.split())} */"
    if schema.get("type") != "object" or not schema.get("properties"):
        yield f"export type {name} = {typed(schema)};"
        return
    required = schema.get("required", ())
    yield f"export interface {name} {{"
    for field, one in schema["properties"].items():
        if comment := remark(one):
            yield f"  /** {comment} */"
        yield f"  {field}{'' if field in required else '?'}: {typed(one)};"
    yield "}"


def remark(schema: Mapping[str, Any]) -> str:
    """What a field is for, and what holds where it is not sent."""
    parts = [schema["description"]] if "description" in schema else []
    if "default" in schema:
        parts.append(f"Default: {json.dumps(schema['default'], ensure_ascii=False)}.")
    return " ".join(parts)


def typed(schema: Mapping[str, Any]) -> str:
    """The type that a schema describes. Raises KeyError for a kind of schema that no channel has used so far."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(typed(one) for one in schema["anyOf"])
    if schema["type"] == "array":
        inner = typed(schema["items"])
        return f"Array<{inner}>" if " " in inner else f"{inner}[]"
    if schema["type"] == "object":
        return f"Record<string, {'unknown' if schema.get('additionalProperties', True) else 'never'}>"
    return PLAIN[schema["type"]]


KEPT = ("type", "const", "enum", "required")


def shape(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What of a schema is checked when an answer arrives."""
    found = {key: schema[key] for key in KEPT if key in schema}
    if "$ref" in schema:
        found["$ref"] = typed(schema)
    if "anyOf" in schema:
        found["anyOf"] = [shape(one) for one in schema["anyOf"]]
    if "items" in schema:
        found["items"] = shape(schema["items"])
    if "properties" in schema:
        found["properties"] = {name: shape(one) for name, one in schema["properties"].items()}
    return found


def arriving(contract: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions that answers are made of."""
    wanted = ["ChannelError", *(typed(one["response"]) for one in contract["channels"].values())]
    for name in wanted:
        inside = re.findall(r'"#/\$defs/(\w+)"', json.dumps(contract["$defs"][name]))
        wanted += [one for one in inside if one not in wanted]
    # A newer Homing may have more codes; who gets one that it does not know still has the message.
    return {name: contract["$defs"][name] for name in sorted(wanted)} | {"ErrorCode": {"type": "string"}}


def with_offsets(contract: Mapping[str, Any]) -> list[str]:
    """The channels whose request says what offsets count."""
    return [
        name
        for name, channel in contract["channels"].items()
        if "offsetUnit" in contract["$defs"][typed(channel["request"])].get("properties", {})
    ]


if __name__ == "__main__":
    TARGET.write_text(channels_file(), encoding="utf-8")
    print(f"wrote {TARGET.relative_to(TARGET.parent.parent.parent.parent)}")
