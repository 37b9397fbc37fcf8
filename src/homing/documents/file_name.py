"""What an uploaded file is called, whatever a browser, a person or an attacker calls it."""

from __future__ import annotations

import unicodedata

from homing.errors import InvalidArgument

LONGEST = 255
"""Bytes, as file systems have it."""

# Marks that turn the direction of writing make `exe.fdp` look like another name.
_TURNING = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def file_name(given: str) -> str:
    """The name without its folders, its characters composed: one file has one name on every system.

    Raises InvalidArgument for a name that is empty, too long, or has characters that nobody can see.
    """
    if not isinstance(given, str):
        raise InvalidArgument(f"a file name is text; got {type(given).__name__}")
    name = unicodedata.normalize("NFC", given.replace("\\", "/").rpartition("/")[2]).strip()
    if name in ("", ".", ".."):
        raise InvalidArgument(f"{given[:80]!r} is not the name of a file; name it like 手册.pdf")
    if any(char in _TURNING or unicodedata.category(char) in ("Cc", "Cs") for char in name):
        raise InvalidArgument(f"the file name {given[:80]!r} has invisible characters; rename the file")
    if len(name.encode()) > LONGEST:
        raise InvalidArgument(f"the file name {name[:40]}… has more than {LONGEST} bytes; shorten it")
    return name
