"""Whose rows a retriever reads."""

from __future__ import annotations

from typing import Any

from homing.errors import InvalidArgument
from homing.stores import arguments


def checked_user(user_id: Any) -> int | str:
    """The user as given, who must be one: a whole number, or text that is not blank. Nothing stands for everybody.

    A table tells the number 1 from the text "1"; a store takes them for the same user.
    """
    try:
        arguments.checked_user(user_id)
    except InvalidArgument as error:
        raise InvalidArgument(f"a retriever belongs to one user_id: {error.message}") from error
    return int(user_id) if isinstance(user_id, int) else str(user_id)
