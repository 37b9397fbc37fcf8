"""Numbered steps that bring the tables of a component up to date, told in the words of each engine."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence

from homing.database.database import Step, Transaction
from homing.errors import StoreTooNew

logger = logging.getLogger(__name__)


def check_known(where: str, component: str, found: int, known: int) -> int:
    """How many steps were applied; refuses more than this Homing knows."""
    if found > known:
        raise StoreTooNew(
            f"{where}: {component!r} is at step {found}, this Homing knows {known}; upgrade Homing to use it",
            details={"place": where, "component": component, "found": found, "known": known},
        )
    return found


def apply_steps(
    transaction: Transaction,
    steps: Sequence[Step],
    done: int,
    types: Mapping[str, str],
    remember: Callable[[int], object],
    *,
    table_end: str = "",
) -> None:
    """Run the steps after those that are `done`, each with our words for types replaced by those of the engine.

    `table_end` is what follows the definition of a table.
    """
    words = re.compile(rf"\b({'|'.join(types)})\b")
    for number, step in enumerate(steps[done:], start=done + 1):
        if not isinstance(step, str):
            step(transaction)
        for part in step.split(";") if isinstance(step, str) else ():
            if declared := words.sub(lambda found: types[found[0]], part).strip():
                is_table = declared.startswith("CREATE TABLE") and declared.endswith(")")
                transaction.connection.execute(declared + table_end * is_table)
        remember(number)
        logger.info("applied step %d of %d", number, len(steps))
