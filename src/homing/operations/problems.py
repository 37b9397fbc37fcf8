"""What is wrong with a field of a request, in words that say what to send; never what was sent."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from homing.errors import InvalidArgument

MAX_NAME = 64

UNKNOWN = "is not known"

NOT_BLANK = r"\S"
NO_NUL = r"^[^\x00]+$"
EMPTY_OR_NO_NUL = r"^[^\x00]*$"
ONE_PART = r"^[^\x00/]+$"
"""A name in an address that ends at the next slash."""

_NUL = "has a NUL character in it; leave that out"
_WORDS = {
    NOT_BLANK: "is blank; it needs at least one character that can be seen",
    NO_NUL: _NUL,
    EMPTY_OR_NO_NUL: _NUL,
    ONE_PART: _NUL,
}


def problem(error: Mapping[str, Any], fields: Sequence[str] = ()) -> str:
    """What pydantic found, after the name of the field; `fields` are the ones there are."""
    kind, message = error["type"], str(error["msg"])
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        close = difflib.get_close_matches(str(error["loc"][-1])[:MAX_NAME], fields, n=1)
        return f"{UNKNOWN} (did you mean {close[0]}?)" if close else UNKNOWN
    if kind == "string_unicode":
        return "has half of a character in it, as when an emoji is cut in two; send whole ones"
    if kind == "string_pattern_mismatch":
        return _WORDS.get(error["ctx"]["pattern"], message)
    return message.replace("Input should", "should").replace("String should", "should").replace("List should", "should")


def refusal(where: str, kind: type[BaseModel], error: ValidationError) -> InvalidArgument:
    """What is wrong with an input and what to send; never what was sent."""
    fields = [field.alias or name for name, field in kind.model_fields.items()]
    problems = [
        {
            "field": ".".join(str(part)[:MAX_NAME] for part in one["loc"]),
            "message": "the payload is a JSON object" if one["type"] == "model_type" else problem(one, fields),
        }
        for one in error.errors(include_input=False, include_url=False)
    ]
    said = "; ".join(" ".join(filter(None, (one["field"], one["message"]))) for one in problems[:5])
    takes = f"it takes {', '.join(fields)}" if fields else "it takes no fields"
    return InvalidArgument(f"{where}: {said}; {takes}", details={"problems": problems})
