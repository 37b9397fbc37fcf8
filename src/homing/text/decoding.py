"""Bytes that a person wrote, as text, whatever the editor; and text that UTF-8 can carry."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_MOSTLY = 0.02
"""Share of broken characters up to which a text is taken for UTF-8 that was damaged."""


class NotText(ValueError):
    """The bytes are not text that can be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text, the encoding it was read with, and how many characters could not be read and were replaced."""

    text: str
    encoding: str
    replaced: int = 0


def decode_any(content: bytes) -> Decoded:
    """Bytes as text: UTF-8, UTF-16 with its mark, GB18030, Windows Latin, or UTF-8 with some damage. Raises NotText."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _strict(content, "utf-16") or _damaged(content, "utf-16")
    if b"\0" in content:
        raise NotText("binary: it contains NUL bytes")
    whole = _strict(content, "utf-8-sig")
    if whole is not None:
        return whole
    damaged = _damaged(content, "utf-8-sig")
    if damaged.replaced <= _MOSTLY * sum(char > "\x7f" for char in damaged.text):
        return damaged
    runs = re.findall(rb"[\x80-\xff]+", content)
    # Chinese comes in runs of several bytes beyond ASCII; a curly quote or an accent of a Latin text stands alone.
    latin = sum(len(run) == 1 for run in runs) * 2 > len(runs)
    return _strict(content, "cp1252" if latin else "gb18030") or _strict(content, "gb18030") or damaged


def _strict(content: bytes, encoding: str) -> Decoded | None:
    try:
        return Decoded(content.decode(encoding), encoding.removesuffix("-sig"))
    except UnicodeDecodeError:
        return None


def _damaged(content: bytes, encoding: str) -> Decoded:
    text = content.decode(encoding, "replace")
    return Decoded(text, encoding.removesuffix("-sig"), text.count("\ufffd"))


def readable(value: Any) -> Any:
    """The same, except that every half of a surrogate pair in a text is U+FFFD; offsets stay what they are."""
    if isinstance(value, str):
        # The pattern is not compiled before it is needed: so large a set of characters takes milliseconds.
        return value if is_encodable(value) else re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, dict):
        return {readable(key): readable(one) if isinstance(one, _DEEP) else one for key, one in value.items()}
    if isinstance(value, list):
        return [readable(one) if isinstance(one, _DEEP) else one for one in value]
    return value


_DEEP = (str, dict, list)
"""What may hold a text; numbers, of which there are most, do not."""


def without_surrogates(text: str) -> str:
    """The same text, except that halves of a surrogate pair are joined and lone ones replaced by U+FFFD."""
    return text if is_encodable(text) else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_encodable(text: str) -> bool:
    """Whether UTF-8 can write the text."""
    # Trying takes a third of the time of looking, and hardly any text has such a half.
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False
