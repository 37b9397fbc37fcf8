"""Messages as bytes of JSON, whatever text is in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def as_json(message: Mapping[str, Any]) -> bytes:
    """A message on one line; Chinese as it is, half a surrogate pair as an escape."""
    try:
        return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
