"""Metadata as pairs that can be compared by equality: what filters ask and what engines index.

A value becomes its canonical JSON, so `1`, `"1"` and `true` differ while `1` and `1.0`, which JSON does not tell apart,
are one. Each item of a list is a pair of its own. A long value is named by its hash: only equality is ever asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

LONGEST = 120
"""Characters of a canonical value that are kept as they are."""


def attributes(metadata: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The pairs that a record with this metadata is found by."""
    pairs: set[tuple[str, str]] = set()
    for key, value in metadata.items():
        if isinstance(value, list | tuple):
            pairs.update((key, canonical(item)) for item in value)
        else:
            pairs.add((key, canonical(value)))
    return pairs


def canonical(value: Any) -> str:
    """One text per value: equal texts, equal values."""
    if type(value) is str:
        text = json.dumps(value)
    elif type(value) is int:
        return str(value) if -(10**LONGEST) < value < 10**LONGEST else _hashed(json.dumps(value))
    else:
        text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))
    return text if len(text) <= LONGEST else _hashed(text)


def _hashed(text: str) -> str:
    # No JSON text begins with '#'.
    return "#" + hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
