"""Types of Python written as those of TypeScript, which people who read JSON know."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel

PLAIN: dict[Any, str] = {
    str: "string",
    Path: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
    Any: "any",
    object: "any",
}


def written(kind: Any) -> str:
    """A type as an expression; what has fields of its own goes by its name."""
    if kind in PLAIN:
        return PLAIN[kind]
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return written(inside[0])
    if origin in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(written(one) for one in inside))
    if origin is Literal:
        return " | ".join(f'"{one}"' if isinstance(one, str) else str(one).lower() for one in inside)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"{{ [key: string]: {written(inside[1])} }}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        element = written(inside[0])
        return f"({element})[]" if " | " in element else f"{element}[]"
    if getattr(kind, "__module__", "").startswith("numpy") or "ndarray" in str(origin):
        return "number[]"
    if fields_of(kind) is not None:
        return name_of(kind)
    raise TypeError(f"{kind!r} has no counterpart in JSON")


def declared(kind: Any) -> str:
    """The declaration of a type with fields."""
    inside = fields_of(kind) or {}
    about = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    comment = [f"/** {about} */"] if about and not about.startswith(f"{kind.__name__}(") else []
    rows = [f"  {name}: {written(one)}" for name, one in inside.items()]
    return "\n".join([*comment, f"type {name_of(kind)} = {{", *rows, "}"])


def fields_of(kind: Any) -> dict[str, Any] | None:
    """The fields of a dataclass, a model or a dictionary with named keys; None for any other type."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    if is_typeddict(kind):
        return get_type_hints(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return {field.name: hints[field.name] for field in fields(kind)}
    return None


def named_in(kind: Any) -> Iterator[Any]:
    """The types with fields that a type is made of, itself first."""
    inside = fields_of(kind)
    if inside is None:
        for part in get_args(kind):
            if not isinstance(part, str | int):
                yield from named_in(part)
        return
    yield kind
    for part in inside.values():
        yield from named_in(part)


def name_of(kind: Any) -> str:
    """The name of a type; those that several parts of Homing have are told apart by their part."""
    part = str(kind.__module__).split(".")[1]
    return f"{part.title()}{kind.__name__}" if (part, kind.__name__) in TOLD_APART else str(kind.__name__)


TOLD_APART = {("devices", "Changes"), ("documents", "Changes"), ("devices", "Evaluation")}
