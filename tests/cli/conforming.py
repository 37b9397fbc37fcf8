"""Whether plain data has the shape that a type declares: no key more, no key less."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from homing.cli.shapes.answers import ListedSkill
from homing.cli.typescript import fields_of

OPEN = (ListedSkill,)
"""Types that may hold more than they declare."""


def misfits(value: Any, kind: Any, at: str = "$") -> Iterator[str]:
    """What of a value is not as the type says."""
    inside = fields_of(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if inside is not None:
        yield from _object(value, inside, kind, at)
    elif origin is Annotated:
        yield from misfits(value, arguments[0], at)
    elif origin in (Union, types.UnionType):
        if all(any(misfits(value, one, at)) for one in arguments):
            yield f"{at}: {value!r} is none of {kind}"
    elif origin is Literal:
        if value not in arguments:
            yield f"{at}: {value!r} is not one of {arguments}"
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            yield f"{at}: {value!r} is no object"
        else:
            for key, one in value.items():
                yield from misfits(one, arguments[1], f"{at}.{key}")
    elif isinstance(origin, type) and issubclass(origin, Sequence):
        if not isinstance(value, list):
            yield f"{at}: {value!r} is no list"
        else:
            for position, one in enumerate(value):
                yield from misfits(one, arguments[0], f"{at}[{position}]")
    elif isinstance(origin, type) and origin.__module__ == "numpy":
        yield from misfits(value, list[float], at)
    elif not _plain(value, kind):
        yield f"{at}: {value!r} is no {kind}"


def _object(value: Any, inside: dict[str, Any], kind: Any, at: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{at}: {value!r} is no object"
        return
    if missing := inside.keys() - value.keys():
        yield f"{at} lacks {sorted(missing)}"
    if kind not in OPEN and (more := value.keys() - inside.keys()):
        yield f"{at} also has {sorted(more)}"
    for name in inside.keys() & value.keys():
        yield from misfits(value[name], inside[name], f"{at}.{name}")


def _plain(value: Any, kind: Any) -> bool:
    if kind in (Any, object):
        return True
    if kind is type(None):
        return value is None
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, {Path: str}.get(kind, kind))
