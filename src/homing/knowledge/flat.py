"""A store with the shelves of all users as plain collections, for moving them to a store of another kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from homing.knowledge.shelf import CHUNKS, FILES, USERS, remember_user
from homing.records import VectorRecord
from homing.stores.copying import Copyable
from homing.stores.store import CollectionInfo, Store
from homing.stores.users import KeepsUsersApart


def flat(store: Store) -> Copyable:
    """The store itself where users have collections of their own names; else one that shows their shelves as such.

    So a knowledge base has the same collections in every engine while it is copied, and is found again in the target.
    What a program keeps for users beside it (`for_user`) is not shown.
    """
    return _Flat(store, store) if isinstance(store, KeepsUsersApart) else store


class _Flat:
    def __init__(self, store: Store, users: KeepsUsersApart) -> None:
        self._store = store
        self._users = users

    def collections(self) -> list[CollectionInfo]:
        own = [info for info in self._store.collections() if info.name != USERS]
        of_users = [
            replace(info, name=f"{info.name}:{user}")
            for user in self._store.ids(USERS)
            for info in self._users.for_user(user).collections()
            if info.name in (CHUNKS, FILES)
        ]
        return sorted([*own, *of_users], key=lambda info: info.name)

    def records(self, collection: str) -> Iterator[VectorRecord]:
        store, name = self._place(collection)
        for record in store.records(name):
            yield replace(record, collection=collection)

    def get(self, collection: str, ids: Sequence[str]) -> list[VectorRecord]:
        store, name = self._place(collection)
        return [replace(record, collection=collection) for record in store.get(name, ids)]

    def upsert(self, records: Iterable[VectorRecord]) -> int:
        """The records of each user in a call of their own, then those of the store: a bookmark among them is last."""
        by_user: dict[str, list[VectorRecord]] = {}
        for record in records:
            user, name = _user_of(record.collection)
            by_user.setdefault(user, []).append(replace(record, collection=name))
        own = by_user.pop("", [])
        count = 0
        for user, theirs in by_user.items():
            remember_user(self._store, user)
            count += self._users.for_user(user).upsert(theirs)
        return count + self._store.upsert(own)

    def drop(self, collection: str) -> int:
        store, name = self._place(collection)
        return store.drop(name)

    def _place(self, collection: str) -> tuple[Store, str]:
        user, name = _user_of(collection)
        return (self._users.for_user(user) if user else self._store), name


def _user_of(collection: str) -> tuple[str, str]:
    """Whose shelf a collection is, and its name there; nobody's where it is none."""
    for name in (CHUNKS, FILES):
        if collection.startswith(f"{name}:"):
            return collection.removeprefix(f"{name}:"), name
    return "", collection
