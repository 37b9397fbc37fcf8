"""Fuzzes for as long as it is told to, in as many processes, and exits with 1 where something was found.

    python -m tests.soak.fuzz --seconds 240 --jobs 16         # an hour and four minutes of CPU time

Seconds are CPU time of each process. Every round begins with another seed, which a failure is told with.
"""

from __future__ import annotations

import argparse
import logging
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from functools import partial, wraps
from multiprocessing import get_context

from hypothesis import HealthCheck, given, seed, settings

from tests.soak.targets import TARGETS

ROUND = 300
"""Examples before the next target has its turn."""
PATIENCE = 60
"""Seconds of CPU time after which a round, which takes one, is one that hangs."""
often = settings(
    max_examples=ROUND, deadline=None, suppress_health_check=list(HealthCheck), database=None, print_blob=False
)


class Hangs(KeyboardInterrupt):
    """A check that does not end; of a kind that nobody tries again."""


def _give_up(number: int, frame: object) -> None:
    raise Hangs(f"no end within {PATIENCE} s of CPU time")


def fuzz(seconds: float, job: int) -> tuple[Counter[str], dict[str, str]]:
    """Try targets in turn until the time is over: how often each was tried, and what was found, by target."""
    tried: Counter[str] = Counter()
    found: dict[str, str] = {}
    names = list(TARGETS)
    end = time.process_time() + seconds
    number = job
    while time.process_time() < end or number < job + len(names):
        name = names[number % len(names)]
        number += 1
        if name not in found:
            found |= _tried(name, random.randrange(1 << 32), tried)
    return tried, found


def _tried(name: str, begin: int, tried: Counter[str]) -> dict[str, str]:
    check, strategies = TARGETS[name]
    # What is wrong with a stream is logged each time.
    logging.disable(logging.CRITICAL)

    last: list[object] = []

    @wraps(check)
    def one(*values: object, **named: object) -> None:
        tried[name] += 1
        last[:] = values, named
        check(*values, **named)

    before = signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        seed(begin)(often(given(*strategies)(one)))()
    except (Exception, Hangs) as error:
        return {name: f"seed {begin}, {last!a}\n{''.join(traceback.format_exception(error))}"}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        logging.disable(logging.NOTSET)
    return {}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args(arguments)
    if asked.jobs == 1:
        told = [fuzz(asked.seconds, 0)]
    else:
        with get_context("spawn").Pool(asked.jobs) as pool:
            told = pool.map(partial(fuzz, asked.seconds), range(asked.jobs), chunksize=1)
    tried = sum((one for one, _ in told), Counter[str]())
    found = {name: text for _, one in told for name, text in one.items()}
    for name, count in sorted(tried.items()):
        print(f"{name}: {count} examples{', FAILED' if name in found else ''}")
    for name, text in found.items():
        print(f"\n{name}, {text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
