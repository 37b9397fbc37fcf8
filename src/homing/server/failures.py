"""Errors as answers: which status each has, and the one shape they all share."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.params import Form
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from homing import errors
from homing.errors import HomingError
from homing.errors_zh import in_chinese
from homing.operations.models import Output
from homing.operations.problems import MAX_NAME, problem
from homing.records import Notice
from homing.server.log_lines import REQUEST_ID

log = logging.getLogger(__name__)

STATUSES: dict[int, tuple[type[HomingError], ...]] = {
    400: (errors.InvalidArgument, errors.TextTooLong),
    401: (errors.Unauthorized,),
    403: (errors.Forbidden,),
    404: (errors.NotFound,),
    408: (errors.RequestTimeout,),
    409: (errors.Conflict, errors.Canceled),
    413: (errors.BodyTooLarge, errors.FileTooLarge),
    415: (errors.UnsupportedFile,),
    422: (errors.FileUnreadable,),
    429: (errors.TooManyRequests,),
    431: (errors.HeadersTooLarge,),
    503: (
        errors.Overloaded, errors.Backpressure, errors.EmbeddingError, errors.ChatError, errors.MissingExtra,
        errors.LanceSearchError, errors.StoreBusy, errors.StoreClosed, errors.StoreReadOnly, errors.StoreUnavailable,
    ),
}  # fmt: skip
"""The first that fits holds; what is not here is a 500."""

MALFORMED_JSON = "the body cannot be read as JSON; send one JSON object, whole and in UTF-8"


class FailureNotice(Output):
    """What went wrong, for a person, in both languages."""

    zh: str
    en: str


class Failure(Output):
    """What went wrong: a stable `code`, a message that says what to do next, and a notice for people."""

    code: str
    message: str
    notice: FailureNotice
    details: dict[str, Any]
    request_id: str


class FailureBody(Output):
    """The body of every answer that is not a success."""

    error: Failure


def _documented(status: int, code: str, message: str) -> dict[str, Any]:
    notice = {"zh": in_chinese(code), "en": message}
    error = {"code": code, "message": message, "notice": notice, "details": {}, "request_id": "5f0c5a7e9b1d4c37"}
    return {
        "model": FailureBody,
        "description": HTTPStatus(status).phrase,
        "content": {"application/json": {"example": {"error": error}}},
    }


ERRORS: dict[int | str, dict[str, Any]] = {
    400: _documented(400, "INVALID_ARGUMENT", "the query is empty; say what is to be done"),
    401: _documented(401, "UNAUTHORIZED", "this server needs a token; send it as `Authorization: Bearer …`"),
    403: _documented(403, "FORBIDDEN", "the token may read, not write; create one with `--scope write`"),
    404: _documented(404, "NOT_FOUND", "there is no document 'ch9' in 'novel'"),
    409: _documented(409, "CONFLICT", "this is being done already; see the job in details"),
    413: _documented(413, "BODY_TOO_LARGE", "a request may send 16777216 bytes"),
    422: _documented(422, "VALIDATION_FAILED", "body.limit: Input should be a valid integer"),
    429: _documented(429, "TOO_MANY_REQUESTS", "at most 20 requests a second; come back in 1 s"),
    500: _documented(500, "RETRIEVAL_FAILED", "知识库检索失败 (retrieval failed): …"),
    503: _documented(503, "OVERLOADED", "too many requests are waiting; come back in 1 s"),
}
"""What is answered where something is wrong, by status."""
ALWAYS = frozenset({400, 401, 403, 429, 500, 503})
"""What any request may be answered with: an address, a token, a host, a rate, a fault or a load may be the reason."""


def errors_of(route: APIRoute) -> dict[int | str, dict[str, Any]]:
    """For the `responses` of a route: the errors that it may answer with; those that it names itself among them."""
    statuses = set(ALWAYS)
    if route.body_field is not None:
        statuses |= {413, 422}
    if route.dependant.path_params or route.dependant.query_params or route.dependant.header_params:
        statuses.add(422)
    named = [int(one) for one in route.responses if one in ERRORS]
    return {one: ERRORS[one] | route.responses.get(one, {}) for one in sorted({*statuses, *named})}


def status_of(kind: type[HomingError]) -> int:
    """The HTTP status that tells this kind of error."""
    return next((status for status, known in STATUSES.items() if issubclass(kind, known)), 500)


def failure(
    status: int,
    code: str,
    message: str,
    details: Mapping[str, Any] | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    zh: str = "",
) -> JSONResponse:
    """An answer that says what went wrong; in Chinese by its code, where there is nothing more exact to say."""
    body = Failure(
        code=code,
        message=message,
        notice=FailureNotice(zh=zh or in_chinese(code), en=message),
        details=dict(details or {}),
        request_id=REQUEST_ID.get(),
    )
    return JSONResponse({"error": body.model_dump(mode="json")}, status_code=status, headers=dict(headers or {}))


def failed(error: HomingError) -> JSONResponse:
    """The answer for one of our errors."""
    status = status_of(type(error))
    headers = {}
    after = getattr(error, "retry_after", None)
    if after is not None or status == 503:
        headers["retry-after"] = str(max(1, math.ceil(after or 1)))
    if status == 401:
        headers["www-authenticate"] = 'Bearer realm="homing"'
    if status >= 500:
        log.warning("%s: %s", error.code, error.message)
    return failure(status, error.code, error.message, error.details, headers=headers)


async def answer_failure(request: Request, error: Exception) -> JSONResponse:
    """For `HomingError`s that a route raises."""
    assert isinstance(error, HomingError)
    return failed(error)


async def answer_invalid(request: Request, error: Exception) -> JSONResponse:
    """For requests that are not as described. What was sent is not repeated: it may be long, or secret."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if found[0]["type"] == "json_invalid":
        message, problems = (
            MALFORMED_JSON,
            [{"where": "body", "message": f"{found[0]['ctx']['error']} at {found[0]['loc'][1]}"}],
        )
        return failure(400, "MALFORMED_JSON", message, {"problems": problems})
    return _invalid(error, request)


async def answer_http(request: Request, error: Exception) -> JSONResponse:
    """For what the framework refuses by itself: a body it cannot read, no such route, no such method."""
    assert isinstance(error, HTTPException)
    status, message = error.status_code, str(error.detail)
    headers = dict(error.headers or {})
    if status == 400 and request.headers.get("content-type", "").startswith("multipart/"):
        return failure(400, "MALFORMED_FORM", f"the form cannot be read ({message}); send multipart/form-data, whole")
    if status == 400:
        return failure(400, "MALFORMED_JSON", MALFORMED_JSON)
    if status == 404:
        return failure(404, "NOT_FOUND", "there is nothing at this address; /openapi.json tells what is where")
    if status == 405:
        # The framework names the methods of the first route that fits, where several share a path.
        headers["allow"] = ", ".join(request.app.state.methods.of(request.scope["path"]))
        message = f"{request.method} is not what this address takes; it takes {headers['allow']}"
        return failure(405, "METHOD_NOT_ALLOWED", message, headers=headers)
    return failure(status, "REFUSED" if status < 500 else "INTERNAL_ERROR", message, headers=headers)


AS_JSON = Notice(
    "应为 JSON 对象，并带上 `content-type: application/json`",
    "should be a JSON object, sent with `content-type: application/json`",
)
AS_FILE = Notice(
    "应为文件：请用 multipart/form-data 发送，并带上文件名",
    "should be a file: send multipart/form-data in which its part has a filename",
)
MAX_NAMED = 3
"""Problems that a sentence names; the details have all of them."""
NOT_AN_OBJECT = frozenset({"missing", "model_type", "model_attributes_type", "dict_type"})


def _invalid(error: RequestValidationError, request: Request) -> JSONResponse:
    """The first problems in a sentence, with the fields there are where one is not known; the details have all."""
    fields, form = _fields(request), isinstance(_body(request), Form)
    # Where a problem is, such as `body.limit`, and what it is.
    found = [(_where(one["loc"]), _problem(one, fields, form)) for one in error.errors()]
    en = "; ".join(f"{where}: {one.en}" for where, one in found[:MAX_NAMED])
    zh = "；".join(f"{where} {one.zh}" for where, one in found[:MAX_NAMED])
    if fields and any(one["type"] == "extra_forbidden" for one in error.errors()[:MAX_NAMED]):
        en, zh = f"{en}; it takes {', '.join(fields)}", f"{zh}；可用的字段：{'、'.join(fields)}"
    problems = [{"where": where, "message": one.en} for where, one in found]
    return failure(422, "VALIDATION_FAILED", en, {"problems": problems}, zh=f"请求的格式有误：{zh}")


def _problem(error: Mapping[str, Any], fields: Sequence[str], form: bool) -> Notice:
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
