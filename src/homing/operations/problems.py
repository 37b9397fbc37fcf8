"""What is wrong with a field of a request, in words that say what to send; never what was sent."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from homing.errors import InvalidArgument
from homing.errors_zh import field_in_chinese
from homing.records import Notice

MAX_NAME = 64

NOT_BLANK = r"\S"
NO_NUL = r"^[^\x00]+$"
EMPTY_OR_NO_NUL = r"^[^\x00]*$"
ONE_PART = r"^[^\x00/]+$"
"""A name in an address that ends at the next slash."""

_NUL = Notice("里面有 NUL 字符，请去掉", "has a NUL character in it; leave that out")
_PATTERNS = {
    NOT_BLANK: Notice("是空白，至少要有一个看得见的字", "is blank; it needs at least one character that can be seen"),
    NO_NUL: _NUL,
    EMPTY_OR_NO_NUL: _NUL,
    ONE_PART: _NUL,
}
_HALF = Notice(
    "里面有半个字符，像是被截断的表情符号；请发送完整的字符",
    "has half of a character in it, as when an emoji is cut in two; send whole ones",
)


def problem(error: Mapping[str, Any], fields: Sequence[str] = ()) -> Notice:
    """What pydantic found, to be said after the name of the field; `fields` are the ones there are."""
    kind, said, context = error["type"], str(error["msg"]), error.get("ctx", {})
    if kind == "missing":
        return Notice("是必填项", "is required")
    if kind == "extra_forbidden":
        close = difflib.get_close_matches(str(error["loc"][-1])[:MAX_NAME], fields, n=1)
        return Notice(
            f"是未知的字段（是不是 {close[0]}？）" if close else "是未知的字段",
            f"is not known (did you mean {close[0]}?)" if close else "is not known",
        )
    if kind == "string_unicode":
        return _HALF
    if kind == "string_pattern_mismatch" and context["pattern"] in _PATTERNS:
        return _PATTERNS[context["pattern"]]
    for prefix in ("Input should", "String should", "List should"):
        said = said.replace(prefix, "should")
    return Notice(field_in_chinese(kind, context), said)


def refusal(where: str, kind: type[BaseModel], error: ValidationError) -> InvalidArgument:
    """What is wrong with an input and what to send; never what was sent."""
    fields = [field.alias or name for name, field in kind.model_fields.items()]
    problems = [
        {
            "field": ".".join(str(part)[:MAX_NAME] for part in one["loc"]),
            "message": "the payload is a JSON object" if one["type"] == "model_type" else problem(one, fields).en,
        }
        for one in error.errors(include_input=False, include_url=False)
    ]
    said = "; ".join(" ".join(filter(None, (one["field"], one["message"]))) for one in problems[:5])
    takes = f"it takes {', '.join(fields)}" if fields else "it takes no fields"
    return InvalidArgument(f"{where}: {said}; {takes}", details={"problems": problems})
