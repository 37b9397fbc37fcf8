"""What is wrong with a request, field by field, and what its route takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.params import Form
from pydantic import BaseModel

from homing.operations.problems import MAX_NAME, UNKNOWN, problem

AS_JSON = "should be a JSON object, sent with `content-type: application/json`"
AS_FILE = "should be a file: send multipart/form-data in which its part has a filename"
MAX_TOLD = 3
"""Problems that a sentence tells; the details have all of them."""
NOT_AN_OBJECT = frozenset({"missing", "model_type", "model_attributes_type", "dict_type"})


def problems_of(error: RequestValidationError, request: Request) -> list[dict[str, str]]:
    """Every problem with the place it is at, such as `body.limit`."""
    fields, form = _fields(request), isinstance(_body(request), Form)
    return [{"where": _where(one["loc"]), "message": _told(one, fields, form)} for one in error.errors()]


def in_words(problems: Sequence[Mapping[str, str]], request: Request) -> str:
    """The first problems, and which fields there are where one is not known."""
    first = problems[:MAX_TOLD]
    told = "; ".join(f"{one['where']}: {one['message']}" for one in first)
    fields = _fields(request)
    unknown = any(one["message"].startswith(UNKNOWN) for one in first)
    return f"{told}; it takes {', '.join(fields)}" if unknown and fields else told


def _told(error: Mapping[str, Any], fields: Sequence[str], form: bool) -> str:
    place = error["loc"]
    if place == ("body",) and error["type"] in NOT_AN_OBJECT:
        return AS_JSON
    if form and error["type"] in ("missing", "value_error"):
        return AS_FILE
    # What stands further in is a field of something else.
    return problem(error, fields if len(place) == 2 else ())


def _where(place: Sequence[int | str]) -> str:
    return ".".join(str(part)[:MAX_NAME] for part in place)


def _fields(request: Request) -> list[str]:
    """The fields that the body of the route has."""
    model = getattr(_body(request), "annotation", None)
    return list(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []


def _body(request: Request) -> Any:
    """How the route takes its body; None where it takes none."""
    return getattr(getattr(request.scope.get("route"), "body_field", None), "field_info", None)
