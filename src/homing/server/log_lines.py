"""Log lines: JSON for programs, one short line for people. Neither has a token, a key or a text that was searched for.

What is logged is chosen where it is logged: routes log patterns and paths, never bodies and query strings.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from contextvars import ContextVar
from typing import Any

from homing.errors import hide_passwords

FIELDS = ("method", "path", "route", "status", "ms", "user", "query")
"""What a record may carry beside its message."""


class JsonLines(logging.Formatter):
    """One JSON object a line, with the id of the request it belongs to."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": hide_passwords(record.getMessage()),
        }
        if name := REQUEST_ID.get():
            line["request_id"] = name
        line |= {key: getattr(record, key) for key in FIELDS if hasattr(record, key)}
        if record.exc_info:
            line["trace"] = hide_passwords(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


class ShortLines(logging.Formatter):
    """For a terminal: what was asked for, how it ended, how long it took; messages as they are."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        at = time.strftime("%H:%M:%S", time.localtime(record.created))
        fields = record.__dict__
        if "status" in fields:
            return f"{at}  {fields['status']} {fields['method']} {_on_one_line(fields['path'])}  {fields['ms']} ms"
        message = f"{at}  {record.levelname.lower()}: {_on_one_line(hide_passwords(record.getMessage()))}"
        if query := fields.get("query"):
            message += f" {query!r}"
        return message + (f"\n{hide_passwords(self.formatException(record.exc_info))}" if record.exc_info else "")


def _on_one_line(text: str) -> str:
    """Names that callers choose are in what is logged: none of them moves the cursor, or begins a line of its own."""
    return "".join(char if char.isprintable() else "�" for char in text)


def log_to_stderr(*, as_json: bool, level: int = logging.INFO) -> None:
    """Sets up logging for a process that is a server and nothing else; in place of what was set up before."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else ShortLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    if not as_json and level == logging.INFO:
        # At a terminal people want to see who asks, and what is wrong.
        logging.getLogger("homing").setLevel(logging.WARNING)
        logging.getLogger("homing.server").setLevel(logging.INFO)
    # What libraries say about themselves at this level is said by the start message and by our own lines.
    for library in ("uvicorn", "httpx2", "mcp"):
        logging.getLogger(library).setLevel(max(level, logging.WARNING))


HEADER = "x-request-id"
REQUEST_ID: ContextVar[str] = ContextVar("homing_request_id", default="")

_ACCEPTED = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def request_id(given: str | None) -> str:
    """The id that a caller gave, where it can stand in a log; else a new one."""
    return given if given and _ACCEPTED.fullmatch(given) else secrets.token_hex(8)
