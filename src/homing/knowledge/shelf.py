"""The part of a store that belongs to one user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from homing.records import VectorRecord
from homing.stores.store import Store
from homing.stores.users import KeepsUsersApart, checked_user

CHUNKS = "knowledge.chunks"
"""The collection that the passages of a user are in, where the store keeps users apart."""
FILES = "knowledge.files"
USERS = "knowledge.users"


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where the chunks and the files of one user are."""

    store: Store
    chunks: str
    files: str


def shelf_of(store: Store, user_id: str | int) -> Shelf:
    """The shelf of a user. A store that keeps users apart gives its view; in others each has collections of their own.

    Raises InvalidArgument where there is no user.
    """
    user = checked_user(user_id)
    if isinstance(store, KeepsUsersApart):
        return Shelf(store.for_user(user), CHUNKS, FILES)
    # The user's name comes last, so that no name can be made to end in another's.
    return Shelf(store, f"{CHUNKS}:{user}", f"{FILES}:{user}")


def remember_user(store: Store, user_id: str | int) -> None:
    """Note who has a shelf, where the store does not show one user's collections to another."""
    if isinstance(store, KeepsUsersApart):
        store.upsert([VectorRecord(checked_user(user_id), USERS, None)])


def views(store: Store) -> Iterator[Store]:
    """The views of all users that have a shelf: what a change of the model has to visit beside the store itself."""
    if isinstance(store, KeepsUsersApart):
        for user in store.records(USERS):
            yield store.for_user(user.id)
