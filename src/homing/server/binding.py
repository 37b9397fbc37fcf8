"""Operations as HTTP routes: fields of an input come from the path, and the others from the query or the body."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import NoneType
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Path, Query
from fastapi import Body as Payload
from pydantic import BaseModel, RootModel, TypeAdapter, create_model
from pydantic.fields import FieldInfo

from homing.operations import OPERATIONS, Operation
from homing.operations.models import Input
from homing.operations.problems import NO_NUL, ONE_PART
from homing.server.access import Administering, Caller, Reading, Writing
from homing.server.ordering import begin_job, call_of
from homing.server.routes.jobs import JobOut, job_out

NEEDED = {"read": Reading, "write": Writing, "admin": Administering}
NAMED = re.compile(r"\{(\w+)(:\w+)?\}")
BODY = "body"
"""The parameter that the body of a request is."""


def operations_router() -> APIRouter:
    """A route for each operation that is on HTTP."""
    router = APIRouter()
    for one in OPERATIONS.values():
        if one.http is not None:
            _bind(router, one, *one.http.split())
    return router


def _bind(router: APIRouter, bound: Operation, method: str, path: str) -> None:
    router.add_api_route(
        path,
        _endpoint(bound, method, path),
        methods=[method],
        status_code=202 if bound.job is not None else bound.status,
        response_model=JobOut if bound.job is not None else bound.output,
        operation_id=bound.name,
        description=bound.description,
        tags=[bound.tag],
        responses={status: {} for status in [404] * bound.may_miss + [409] * (bound.job is not None)},
    )


def _endpoint(bound: Operation, method: str, path: str) -> Callable[..., Any]:
    parameters = _parameters(bound.input, method, dict(NAMED.findall(path)))

    def endpoint(caller: Caller, **given: Any) -> Any:
        return answer_operation(bound, caller, _asked(bound.input, given))

    caller = inspect.Parameter("caller", inspect.Parameter.KEYWORD_ONLY, annotation=NEEDED[bound.scope])
    endpoint.__signature__ = inspect.Signature([*parameters, caller])  # type: ignore[attr-defined]
    endpoint.__name__ = bound.name
    return endpoint


def _parameters(kind: type[Any], method: str, named: dict[str, str]) -> list[inspect.Parameter]:
    if issubclass(kind, RootModel):
        return [_parameter(BODY, _placed(kind.model_fields["root"], Payload()))]
    own = {name: field for name, field in kind.model_fields.items() if name in named}
    rest = {name: field for name, field in kind.model_fields.items() if name not in named}
    found = [_parameter(name, _in_path(field, ends=not named[name])) for name, field in own.items()]
    if method in ("GET", "DELETE"):
        return found + [_parameter(name, _placed(field, Query()), field) for name, field in rest.items()]
    if not kind.model_fields:
        return [_parameter(BODY, kind | None, FieldInfo(default=None))]
    if not rest:
        return found
    body = _without(kind, rest) if own else kind
    if any(field.is_required() for field in rest.values()):
        return [*found, _parameter(BODY, body)]
    return [*found, _parameter(BODY, body | None, FieldInfo(default=None))]


def _in_path(field: FieldInfo, *, ends: bool) -> Any:
    """What a path names is there; where it `ends` at the next slash, none can be in it."""
    given = field.rebuild_annotation()
    if NoneType in get_args(given):
        given = get_args(given)[0]
    one_part = ends and TypeAdapter(given).json_schema().get("pattern") == NO_NUL
    return Annotated[given, Path(pattern=ONE_PART) if one_part else Path()]


def _placed(field: FieldInfo, place: Any) -> Any:
    return Annotated[field.rebuild_annotation(), place]


def _parameter(name: str, annotation: Any, field: FieldInfo | None = None) -> inspect.Parameter:
    default = inspect.Parameter.empty if field is None or field.is_required() else field.get_default()
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _without(kind: type[Input], rest: dict[str, FieldInfo]) -> type[Input]:
    """The input without what the path names, for the body."""
    fields: dict[str, Any] = {name: (field.annotation, field) for name, field in rest.items()}
    return create_model(kind.__name__, __base__=Input, __doc__=kind.__doc__, **fields)


def _asked(kind: type[Any], given: dict[str, Any]) -> Any:
    if issubclass(kind, RootModel):
        return kind(given[BODY])
    body = given.pop(BODY, None)
    if body is not None:
        given |= {name: getattr(body, name) for name in body.model_fields_set}
    # Every part was checked on its way in.
    return kind.model_construct(**given)


def answer_operation(bound: Operation, caller: Caller, asked: Any) -> BaseModel:
    """What an operation answers a caller, or the job that it has become."""
    if (query := getattr(asked, "query", None) or getattr(asked, "text", None)) and bound.scope == "read":
        caller.service.log_query(query)
    if bound.job is not None:
        return job_out(begin_job(bound, caller, asked).view)
    return bound.answer(call_of(caller), asked, caller.service.metrics.on_search)
