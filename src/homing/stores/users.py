"""Stores that keep the rows of their users apart by themselves."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from homing.errors import InvalidArgument
from homing.stores.arguments import is_encodable
from homing.stores.store import Store

MAX_USER = 200
"""Bytes of a user's name."""


@runtime_checkable
class MultiUserStore(Protocol):
    """A store with a view for each of its users, which reaches nothing else; `user_id` is empty on the whole store."""

    user_id: str

    def for_user(self, user_id: str | int) -> Store:
        """The store of one user."""


def checked_user(user_id: str | int) -> str:
    """The user, who must be one; nothing stands for everybody. `1` and `"1"` are the same user."""
    user = str(user_id) if isinstance(user_id, int) and not isinstance(user_id, bool) else user_id
    if not isinstance(user, str):
        raise InvalidArgument(f"a user is text or a whole number; got {type(user_id).__name__}")
    if not user.strip() or "\0" in user or not is_encodable(user) or len(user.encode()) > MAX_USER:
        raise InvalidArgument(f"a user is 1 to {MAX_USER} bytes of text; got {user_id!r}")
    return user
