"""Everybody's documents in a store, however it keeps users apart."""

from __future__ import annotations

from collections.abc import Iterator

from homing.documents import archive
from homing.documents.records import COLLECTION, Namespace
from homing.engine.work_state import WorkState
from homing.stores.store import MultiUserStore, Store


def everybody(store: Store) -> Iterator[tuple[Store, Namespace]]:
    """Where the documents of each owner are, those of the folder first: a store that reaches them, and their namespace.

    Makes no tables.
    """
    yield store, Namespace()
    database = store.database
    if database is None:
        return
    if isinstance(store, MultiUserStore):
        for user in WorkState(database, "").users() if database.applied("work") else ():
            yield store.for_user(user), Namespace(user)
    elif database.applied(archive.COMPONENT):
        for user in database.read(archive.owners):
            if user:
                yield store, Namespace(user, f"{COLLECTION}:{user}")
