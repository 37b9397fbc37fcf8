"""Whose rows a retriever reads."""

from __future__ import annotations

from typing import Any

from homing.errors import InvalidArgument

LONGEST = 200
"""Bytes of a user's name."""


def checked_user(user_id: Any) -> int | str:
    """The user, who must be one: a whole number, or text that is not blank. Nothing stands for everybody."""
    if type(user_id) is int:
        return user_id
    if type(user_id) is str and user_id.strip() and "\0" not in user_id and len(_encoded(user_id)) <= LONGEST:
        return user_id
    raise InvalidArgument(
        f"a retriever belongs to one user: user_id is a whole number, or 1 to {LONGEST} bytes of text; got {user_id!r}"
    )


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"user_id is not valid text: {text!r}") from None
