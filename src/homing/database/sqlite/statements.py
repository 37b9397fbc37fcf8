"""SQL as it is written here, in SQLite's words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

_TYPES = {
    "INT64": "INTEGER",
    "FLOAT64": "REAL",
    "BYTES": "BLOB",
    "IDENTITY": "INTEGER PRIMARY KEY AUTOINCREMENT",
}
_TYPE = re.compile(rf"\b({'|'.join(_TYPES)})\b")
_LIST = re.compile(r"= ANY\(\$(\d+)\)")
_PLACE = re.compile(r"\$(\d+)")


@lru_cache(maxsize=1_000)
def statement(sql: str) -> str:
    """A statement with SQLite's placeholders; a list of values travels as JSON."""
    return _PLACE.sub(r"?\1", _LIST.sub(r"IN (SELECT value FROM json_each(?\1))", sql))


def value(given: Any) -> Any:
    """A value as SQLite takes it."""
    return json.dumps(given) if isinstance(given, list) else given


def definitions(step: str) -> Iterator[str]:
    """The statements of a migration. Tables refuse values of another type than they were declared with."""
    for part in step.split(";"):
        declared = _TYPE.sub(lambda found: _TYPES[found[0]], part).strip()
        if declared.startswith("CREATE TABLE") and declared.endswith(")"):
            declared += " STRICT"
        if declared:
            yield declared
