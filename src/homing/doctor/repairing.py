"""`homing repair`: what is derived is made anew from the texts, and what is lost is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homing.engine import Engine


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
    """Make every derived index anew, of every user, in whichever engine; what cannot be trusted is embedded again."""
    texts, removed, waiting = 0, 0, 0
    # The store itself knows what is wrong for everybody.
    found = engine.store.check()
    for one in engine.everybody():
        done = one.store.rebuild()
        texts, removed = texts + done.texts, removed + done.vectors_removed
        served = [info.name for info in one.store.collections() if info.model]
        waiting += sum(count for name in served for count in one.collection(name).embed_missing())
    return Repaired(found, engine.store.check(), texts, removed, waiting)
