"""What only one leg found is measured by the other, too."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from homing.engine.source import Nearest, Source
from homing.errors import StoreError
from homing.stores.store import Measured, Words

log = logging.getLogger(__name__)


def measured(
    source: Source, ids: Iterable[str], nearest: Nearest | None, words: Words | None, limit: int
) -> list[Measured]:
    """These ids as both legs see them, which were asked for `limit` matches each.

    A leg that found fewer found everything that there is for it. So only what a full leg left out is looked up; where
    that fails, it counts for nothing.
    """
    cosines = {} if nearest is None else nearest.cosines
    bm25 = {} if words is None else {one.id: one.bm25 for one in words.found}
    by_meaning = nearest is not None and nearest.vector is not None and not nearest.complete
    by_words = words is not None and len(words.found) >= limit
    known, missing = list[Measured](), list[str]()
    for name in ids:
        if (
            (by_meaning and name not in cosines)
            or (by_words and name not in bm25)
            or not (name in cosines or name in bm25)
        ):
            missing.append(name)
        else:
            known.append(Measured(name, cosines.get(name), bm25.get(name, 0.0)))
    if not missing:
        return known
    try:
        return known + source.measure(missing, None if nearest is None else nearest.vector)
    except StoreError as error:
        log.warning("cannot measure %d hits by the other leg: %s", len(missing), error)
        return known + [Measured(name, cosines.get(name), bm25.get(name, 0.0)) for name in missing]
