"""Moves everything that people keep in a store to another one: records, and the rows that stand beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from homing.database import Database, Row
from homing.database.copying import Table, copy_table
from homing.devices import saved as devices
from homing.documents import folders
from homing.documents.archive import copy_documents
from homing.documents.records import COLLECTION, everybody
from homing.engine import work
from homing.engine.work import Work
from homing.errors import InvalidArgument
from homing.memory import content
from homing.records import VectorRecord
from homing.stores.copying import Copied, Copyable, Progress, copy_store
from homing.stores.store import CollectionInfo, MultiUserStore, Store

COLLECTIONS = (COLLECTION, *content.COLLECTIONS)
"""What users have collections of."""
TABLES = (
    Table(folders.COMPONENT, folders.STEPS, "followed_files", "user_id, project, document"),
    Table("memories", content.STEPS, "memories", "user_id, collection, id"),
    Table(devices.COMPONENT, devices.STEPS, "homes", "user_id"),
)
"""What is copied beside the records and documents: rows of users, each in the name of its user."""
WORK = (
    Table("work", work.STEPS, "work", "user_name, collection, id, model"),
    Table("work", work.STEPS, "wanted", "user_name, collection"),
)
"""What waits for vectors."""


def move(
    source: Store, target: Store, *, tables: Sequence[Table] = (), progress: Progress = lambda done, total: None
) -> Copied:
    """Copy every collection, and every row that a person would miss; see `copy_store`.

    Every user finds their documents, memories and devices again, though engines keep users apart in different ways. A
    store that is no database (LanceDB) has records only. Models and their providers are not copied: their keys are a
    machine's own. `tables` are those that belong to nobody in particular. Where the target is the store of one user
    (`for_user`), what the source has becomes theirs.
    """
    return copy_store(
        _flat(source), _flat(target), progress=progress, before=lambda: _copy_rows(source, target, tables)
    )


def _copy_rows(source: Store, target: Store, tables: Sequence[Table]) -> None:
    if source.database is None or target.database is None:
        return
    apart, into = isinstance(target, MultiUserStore), _whose(target)
    users = sorted({*(own.owner for _, own in everybody(source)), *_users(source.database)})
    if into and users != [""]:
        raise InvalidArgument(f"the source has texts of {len(users)} users, and the target is the store of one")
    for table in () if into else tables:
        copy_table(source.database, target.database, table)
    for user in users:
        own, mine, name = _of(source, user), _of(target, user), into or user
        if apart:
            # Of those who have no texts too: nobody could name them else, behind the fence.
            mine.write(Work(mine, user=name).register)
        copy_documents(own, mine, user, name)
        for table in TABLES:
            copy_table(own, mine, table, partial(_given_to, name), user=user)
    for table in WORK:
        copy_table(source.database, target.database, table, lambda row: _work_of(row, apart, into))


def _given_to(user: str, row: Row) -> Row:
    return user, *row[1:]


def _whose(store: Store) -> str:
    """Whose store it is; empty where it is that of all."""
    return store.user_id if isinstance(store, MultiUserStore) else ""


def _of(store: Store, user: str) -> Database:
    """The database as a user sees it, where the store keeps users apart."""
    found = (store.for_user(user) if user and isinstance(store, MultiUserStore) else store).database
    assert found is not None
    return found


def _users(database: Database) -> set[str]:
    """Whose rows are beside the records, as far as they can be seen."""
    tables = [table for table in TABLES if database.applied(table.component) == len(table.steps)]
    found = database.read(lambda own: [own.rows(f"SELECT DISTINCT user_id FROM {table.name}") for table in tables])
    return {user for rows in found for (user,) in rows}


def _work_of(row: Row, apart: bool, into: str) -> Row:
    """A row of work, or a wish, as the target names its user and collection."""
    user, collection, *rest = row
    if into:
        return into, collection, *rest
    user, collection = (user, collection) if user else _user_of(collection)
    if not apart and user:
        user, collection = "", f"{collection}:{user}"
    return user, collection, *rest


def _flat(store: Store) -> Copyable:
    """The store itself where users have collections of their own names; else one that shows what they have as such.

    What a program keeps for users beside them (`for_user`) is not shown.
    """
    return _Flat(store, store) if isinstance(store, MultiUserStore) and not store.user_id else store


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
            if info.name in COLLECTIONS
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
    """Whose texts a collection holds, and its name there; nobody's where it is none of those."""
    name, _, user = collection.partition(":")
    return (user, name) if user and name in COLLECTIONS else ("", collection)
