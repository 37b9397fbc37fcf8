"""Operations as HTTP routes: fields of an input come from the path, and the others from the query or the body."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi import Body as Payload
from pydantic import RootModel, create_model
from pydantic.fields import FieldInfo

from homing.operations import OPERATIONS, Call, Operation
from homing.operations.models import Input, Output
from homing.server.access import Administering, Caller, Reading, Writing
from homing.server.job_log import Order
from homing.server.jobs import Job
from homing.server.ordering import ordered_work
from homing.server.routes.jobs import JobOut, job_out

NEEDED = {"read": Reading, "write": Writing, "admin": Administering}
NAMED = re.compile(r"\{(\w+)(?::\w+)?\}")
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
        summary=bound.name.replace("_", " ").capitalize(),
        description=bound.description,
        tags=[bound.tag],
    )


def _endpoint(bound: Operation, method: str, path: str) -> Callable[..., Any]:
    parameters = _parameters(bound.input, method, set(NAMED.findall(path)))

    def endpoint(caller: Caller, **given: Any) -> Any:
        return _answer(bound, caller, _asked(bound.input, given))

    caller = inspect.Parameter("caller", inspect.Parameter.KEYWORD_ONLY, annotation=NEEDED[bound.scope])
    endpoint.__signature__ = inspect.Signature([*parameters, caller])  # type: ignore[attr-defined]
    endpoint.__name__ = bound.name
    return endpoint


def _parameters(kind: type[Any], method: str, named: set[str]) -> list[inspect.Parameter]:
    if issubclass(kind, RootModel):
        return [_parameter(BODY, _placed(kind.model_fields["root"], Payload()))]
    own = {name: field for name, field in kind.model_fields.items() if name in named}
    rest = {name: field for name, field in kind.model_fields.items() if name not in named}
    found = [_parameter(name, _placed(field, Path())) for name, field in own.items()]
    if method in ("GET", "DELETE"):
        return found + [_parameter(name, _placed(field, Query()), field) for name, field in rest.items()]
    if not kind.model_fields:
        return [_parameter(BODY, kind | None, FieldInfo(default=None))]
    if not rest:
        return found
    return [*found, _parameter(BODY, _without(kind, rest) if own else kind)]


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
        given |= {name: getattr(body, name) for name in type(body).model_fields}
    # Every part was checked on its way in.
    return kind.model_construct(**given)


def _answer(bound: Operation, caller: Caller, asked: Any) -> Any:
    if (query := getattr(asked, "query", None) or getattr(asked, "text", None)) and bound.scope == "read":
        caller.service.log_query(query)
    call = call_of(caller)
    if bound.job is not None:
        return job_out(_begun(bound, caller, call, asked).view)
    found = bound.run(call, asked)
    if isinstance(found, Output):
        for search in found.searches():
            caller.service.metrics.on_search(*search)
    return found


def call_of(caller: Caller) -> Call:
    """A caller of the server as operations know one."""
    return Call(caller.app, caller.service.app, caller.user, caller.scope)


def _begun(bound: Operation, caller: Caller, call: Call, asked: Any) -> Job:
    """The job of an operation, under way."""
    how, service = bound.job, caller.service
    assert how is not None
    how.check(call, asked)
    order = Order(bound.name, asked.model_dump_json(), caller.scope)
    work = ordered_work(service, order, caller.user)
    return service.jobs.submit(how.kind, how.subject(asked), work, user=caller.user, shared=how.shared, order=order)
