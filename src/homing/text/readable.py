"""Text that UTF-8 can carry: an editor may save half an emoji, and the rest of the text is to be read all the same."""

from __future__ import annotations

import re
from typing import Any

_HALF = re.compile("[\ud800-\udfff]")


def readable(value: Any) -> Any:
    """The same, except that every half of a surrogate pair in a text is U+FFFD; offsets stay what they are."""
    if isinstance(value, str):
        return value if value.isascii() else _whole(value)
    if isinstance(value, dict):
        return {readable(key): readable(one) for key, one in value.items()}
    if isinstance(value, list):
        return [readable(one) for one in value]
    return value


def _whole(text: str) -> str:
    # Trying takes a third of the time of looking, and hardly any text has one.
    try:
        text.encode()
    except UnicodeEncodeError:
        return _HALF.sub("\ufffd", text)
    return text
