"""How the bundled model uses the cores of a machine: texts per second by the number of threads.

    python bench/cores.py TEXTS.jsonl [--threads 1 2 4 8 16] [--rounds 5]

TEXTS.jsonl as for `embedding.py`. The numbers of threads take turns, so that whatever else the machine does meets all
of them. `one thread's %` is the share of the work that only one thread can do, whatever the number of cores (cutting
into tokens apart, which is shared out as well), and `at most, 16 cores` what Amdahl's law makes of it; memory may set a
lower limit.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from embedding import pick_texts
from homing.embedders.local import LocalProvider
from homing.embedders.model_folder import BUNDLED, TOKENIZER
from homing.vectors import Matrix
from report import machine, show, write

RESULTS = Path(__file__).parent / "results" / "cores.json"


class Watched(LocalProvider):
    """Adds up the processor time that the model itself takes."""

    spent = 0.0

    def _run(self, ids: list[list[int]]) -> Matrix:
        started = time.thread_time()
        rows = super()._run(ids)
        self.spent += time.thread_time() - started
        return rows


def share_of_one_thread(texts: list[str], rounds: int) -> float:
    """The part of the work outside the model, on one thread."""
    model, shares = Watched(threads=1), []
    model.load()
    for _ in range(rounds):
        model.spent, started = 0.0, time.thread_time()
        model.embed(texts)
        total = time.thread_time() - started
        shares.append((total - model.spent) / total)
    return statistics.median(shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    jobs = pick_texts(args.texts, Tokenizer.from_file(str(BUNDLED / TOKENIZER)))
    models = {count: LocalProvider(threads=count) for count in args.threads}
    seconds: dict[tuple[str, int], list[float]] = {}
    for model in models.values():
        model.embed(["warm"])
    for _ in range(args.rounds):
        for job, texts in jobs.items():
            for count, model in models.items():
                started = time.perf_counter()
                model.embed(texts)
                seconds.setdefault((job, count), []).append(time.perf_counter() - started)
    rows: list[dict[str, Any]] = []
    for job, texts in jobs.items():
        rate = {count: len(texts) / statistics.median(seconds[job, count]) for count in args.threads}
        alone = share_of_one_thread(texts, args.rounds)
        rows.append(
            {
                "texts": job,
                **{f"{count} threads /s": round(rate[count], 1) for count in args.threads},
                "one thread's %": round(100 * alone, 2),
                "at most, 16 cores": round(1 / (alone + (1 - alone) / 16), 1),
            }
        )
    show(f"{os.cpu_count()} cores, {args.rounds} rounds", rows)
    write(RESULTS, {"machine": machine(), "rounds": args.rounds, "rows": rows})


if __name__ == "__main__":
    main()
