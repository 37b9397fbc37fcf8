"""`homing repair`: what is derived is made anew from the texts, and what is lost is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homing.engine import Engine
from homing.errors import InvalidArgument
from homing.stores.store import Rebuilds, Rebuilt


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was wrong before (`found`) and still is (`left`), how many texts were indexed anew, and how many wait.

    What is left is damage to texts themselves: save them again, or restore a backup.
    """

    found: Sequence[str]
    left: Sequence[str]
    texts: int
    vectors_removed: int
    waiting: int


def repair(engine: Engine) -> Repaired:
    """Make the keyword index and the compact copies of vectors anew; vectors that cannot be trusted are embedded again.

    Raises InvalidArgument where the store is a server's, which mends its own indexes.
    """
    found, texts, removed, waiting = [], 0, 0, 0
    left: list[str] = []
    for one in engine.everybody():
        if not isinstance(one.store, Rebuilds):
            raise InvalidArgument(
                "this store mends its own indexes (PostgreSQL: REINDEX DATABASE); what waits for a vector is embedded "
                "by `homing documents reindex` and `homing memory reindex`"
            )
        found += one.store.check()
        done: Rebuilt = one.store.rebuild()
        texts, removed = texts + done.texts, removed + done.vectors_removed
        waiting += _embed_again(one)
        left += one.store.check()
    return Repaired(found, left, texts, removed, waiting)


def _embed_again(engine: Engine) -> int:
    """Ask for the vectors that are missing; returns how many."""
    served = [info.name for info in engine.store.collections() if info.model]
    return sum(count for name in served for count in engine.collection(name).embed_missing())
