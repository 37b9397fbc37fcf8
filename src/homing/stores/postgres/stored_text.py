"""Texts that PostgreSQL cannot hold, NUL and half a surrogate pair, written so that it can."""

from __future__ import annotations

from homing.stores.arguments import is_encodable


def is_plain(text: str | None) -> bool:
    """Whether a text can be stored as it is."""
    return text is None or ("\0" not in text and is_encodable(text))


def escape(text: str) -> str:
    """Any text in plain ASCII."""
    return text.encode("unicode_escape").decode("ascii")


def unescape(text: str) -> str:
    """The text that `escape` was given."""
    return text.encode("ascii").decode("unicode_escape")
