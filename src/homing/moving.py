"""Moves everything that people keep in a store to another one: records, and the rows that stand beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from homing.database import Row
from homing.database.copying import Table, copy_table
from homing.devices import saved as devices
from homing.documents import folders
from homing.documents.archive import copy_documents
from homing.documents.records import COLLECTION, everybody
from homing.engine import work
from homing.engine.work import Work
from homing.memory import content
from homing.records import VectorRecord
from homing.stores.copying import Copied, Copyable, Progress, copy_store
from homing.stores.store import CollectionInfo, MultiUserStore, Store

TABLES = (
    Table(folders.COMPONENT, folders.STEPS, "followed_files", "project, document"),
    Table("memories", content.STEPS, "memories", "collection, id"),
    Table(devices.COMPONENT, devices.STEPS, "homes", "name"),
)
WORK = (
    Table("work", work.STEPS, "work", "user_name, collection, id, model"),
    Table("work", work.STEPS, "wanted", "user_name, collection"),
)
"""What is copied beside the records and documents: rows that belong to the folder, and what waits for vectors."""


def move(
    source: Store, target: Store, *, tables: Sequence[Table] = (), progress: Progress = lambda done, total: None
) -> Copied:
    """Copy every collection, and every row that a person would miss; see `copy_store`.

    Every user finds their documents again, though engines keep users apart in different ways. A store that is no
    database (LanceDB) has records only. Models and their providers are not copied: their keys are a machine's own.
    """
    return copy_store(
        _flat(source), _flat(target), progress=progress, before=lambda: _copy_rows(source, target, (*TABLES, *tables))
    )


def _copy_rows(source: Store, target: Store, tables: Sequence[Table]) -> None:
    if source.database is None or target.database is None:
        return
    for table in tables:
        copy_table(source.database, target.database, table)
    for view, own in everybody(source):
        mine = target.for_user(own.owner) if own.owner and isinstance(target, MultiUserStore) else target
        assert view.database is not None
        assert mine.database is not None
        copy_documents(view.database, mine.database, own.owner)
    apart = isinstance(target, MultiUserStore)
    for table in WORK:
        copy_table(source.database, target.database, table, lambda row: _work_of(row, apart))


def _work_of(row: Row, apart: bool) -> Row:
    """A row of work, or a wish, as the target names its user and collection."""
    user, collection, *rest = row
    user, collection = (user, collection) if user else _user_of(collection)
    if not apart and user:
        user, collection = "", f"{collection}:{user}"
    return user, collection, *rest


def _flat(store: Store) -> Copyable:
    """The store itself where users have collections of their own names; else one that shows their documents as such.

    What a program keeps for users beside them (`for_user`) is not shown.
    """
    return _Flat(store, store) if isinstance(store, MultiUserStore) else store


class _Flat:
    def __init__(self, store: Store, users: MultiUserStore) -> None:
        self._store = store
        self._users = users

    def collections(self) -> list[CollectionInfo]:
        of_users = [
            replace(info, name=f"{info.name}:{own.owner}")
            for view, own in everybody(self._store)
            if own.owner
            for info in view.collections()
            if info.name == COLLECTION
        ]
        return sorted([*self._store.collections(), *of_users], key=lambda info: info.name)

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
            view = self._users.for_user(user)
            assert view.database is not None
            view.database.write(Work(view.database, user=user).register)
            count += view.upsert(theirs)
        return count + self._store.upsert(own)

    def drop(self, collection: str) -> int:
        store, name = self._place(collection)
        return store.drop(name)

    def _place(self, collection: str) -> tuple[Store, str]:
        user, name = _user_of(collection)
        return (self._users.for_user(user) if user else self._store), name


def _user_of(collection: str) -> tuple[str, str]:
    """Whose documents a collection holds, and its name there; nobody's where it is none of those."""
    _, of_user, user = collection.partition(f"{COLLECTION}:")
    return (user, COLLECTION) if of_user and collection.startswith(COLLECTION) else ("", collection)
