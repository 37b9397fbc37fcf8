"""What a remote API means when it does not answer 200, as one of our errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from homing.errors import (
    EmbeddingError,
    InvalidKey,
    ModelUnknown,
    ProviderUnavailable,
    RateLimited,
    TextTooLong,
    Timeout,
)

MAX_RETRY_AFTER = 3600.0
MAX_QUOTE = 300

# Not every API keeps to the status codes: Google answers 400 to a wrong key, DashScope 400 to an unknown model.
_KEY = re.compile(r"api[ _-]?key[ _-]?(not valid|invalid)|(invalid|incorrect)[ _-]?api[ _-]?key|invalidapikey", re.I)
_MODEL = re.compile(
    r"model[ _.-]?not[ _-]?(found|exist)|model\b.{0,80}\b(does not exist|not found)|unknown model", re.I
)
_LONG = re.compile(
    r"context[ _-]?length|maximum context|too long|too large|max_tokens_per_request|range of input length"
    r"|(input|text|prompt|token)s?\b.{0,60}\bexceed|exceed.{0,60}\b(tokens?|input length)\b",
    re.I,
)


def refusal(who: str, status: int, headers: Mapping[str, str], body: bytes) -> EmbeddingError:
    """The error that says what this answer means. `who` names the provider and its address in the message.

    What the API itself said is quoted; the caller masks the key in it.
    """
    answer = _parsed(body)
    said = _said(answer, body)
    quote = f": {said[:MAX_QUOTE]}" if said else ""
    details = {"status": status}
    if status in (401, 403) or (status == 400 and _KEY.search(said)):
        return InvalidKey(
            f"{who} rejected the API key ({status}); set a valid one for this provider{quote}", details=details
        )
    if status == 404 or (status in (400, 422) and _MODEL.search(said)):
        return ModelUnknown(f"{who} has no such model ({status}); check model and base_url{quote}", details=details)
    if status == 413 or (status in (400, 422) and _LONG.search(said)):
        return TextTooLong(
            f"{who} refused a text for its length ({status}); embed shorter pieces{quote}", details=details
        )
    if status == 429:
        wait = _retry_after(headers, answer)
        return RateLimited(f"{who} asks to slow down (429){quote}", retry_after=wait, details=details)
    if status == 408:
        return Timeout(f"{who} gave up waiting (408){quote}", details=details)
    if status >= 500:
        wait = _retry_after(headers, answer)
        return ProviderUnavailable(f"{who} is failing ({status}){quote}", retry_after=wait, details=details)
    if 300 <= status < 400:
        return EmbeddingError(f"{who} answered with a redirect ({status}); correct base_url", details=details)
    return EmbeddingError(f"{who} refused the request ({status}){quote}", details=details)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _said(answer: Any, body: bytes) -> str:
    """Code and message of an error in any of the usual shapes; plain text as it is, HTML not at all."""
    if isinstance(answer, list) and answer:
        answer = answer[0]
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    if isinstance(error, dict):
        reasons = [detail.get("reason") for detail in _details(error)]
        parts = [error.get(name) for name in ("code", "type", "status", "message", "detail")] + reasons
        return " ".join(dict.fromkeys(str(part) for part in parts if part))
    text = error if isinstance(error, str) else body[:2000].decode(errors="replace")
    return "" if text.lstrip().startswith("<") else " ".join(text.split())


def _details(error: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    details = error.get("details")
    return [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []


def _retry_after(headers: Mapping[str, str], answer: Any) -> float | None:
    """Seconds, from `retry-after-ms`, from `Retry-After` as seconds or as a date, or from Google's RetryInfo."""
    seconds = _number(headers.get("retry-after-ms"), scale=1e-3)
    if seconds is None and (header := headers.get("retry-after")):
        seconds = _number(header)
        if seconds is None:
            seconds = _until(header, headers.get("date"))
    if seconds is None and isinstance(answer, dict) and isinstance(answer.get("error"), dict):
        delays = [_number(str(detail.get("retryDelay", "")).rstrip("s")) for detail in _details(answer["error"])]
        seconds = next((delay for delay in delays if delay is not None), None)
    return None if seconds is None else min(max(seconds, 0.0), MAX_RETRY_AFTER)


def _number(text: str | None, scale: float = 1.0) -> float | None:
    try:
        value = float(text or "") * scale
    except ValueError:
        return None
    return value if value == value else None


def _until(date: str, now: str | None) -> float | None:
    """From the server's own clock where it tells it, because ours may be wrong."""
    try:
        then = parsedate_to_datetime(date)
        start = parsedate_to_datetime(now) if now else datetime.now(UTC)
        return (then - start).total_seconds()
    except (ValueError, TypeError):
        return None
