"""Hours of use in minutes: what a process takes must not grow, and nothing may fail that is not declared.

    python bench/soak.py                              # a twentieth of it, about a minute
    python bench/soak.py --full                       # 20,000 searches, 5,000 saves, 200 clients for two minutes

The provider fails every third call, so that retries, the breaker and the queue are part of it.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

import homing
from homing.app import Homing
from homing.config import ServerSettings, Settings
from homing.errors import HomingError, ProviderUnavailable
from homing.legs import IDLE
from homing.server.application import create_app
from homing.server.running import share_arenas
from homing.testing.fake import FakeEmbedder
from tests.server.live import live

WORDS = ["灯塔", "海鸟", "码头", "发票", "lamp", "whale", "invoice", "keeper", "夜晚", "harbour"]


class EveryThirdFails(FakeEmbedder):
    """A provider that fails every third call."""

    calls = 0

    def embed(self, *args: Any, **options: Any) -> Any:
        self.calls += 1
        if self.calls % 3 == 0:
            raise ProviderUnavailable("every third call fails")
        # What it was given is for tests to look at, and would be all that grows here.
        self.texts.clear()
        return super().embed(*args, **options)


def taken(data: Path) -> dict[str, float]:
    """What this process takes now: megabytes, descriptors, threads, and megabytes of files."""
    gc.collect()
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    files = sum(file.stat().st_size for file in data.rglob("*") if file.is_file())
    return {
        "mb": round(resident / 1024, 1),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "files_mb": round(files / 2**20, 1),
    }


def text(number: int) -> str:
    """A text that comes only once, of words that come again: a word more each time would fill what remembers words."""
    chosen = np.random.default_rng(number).choice(WORDS, 12)
    return " ".join(chosen) + f" {number % 997} {number % 991}"


def one_process(app: Homing, searches: int, saves: int) -> Counter[str]:
    """Searches with saves between them, over five hundred documents."""
    errors: Counter[str] = Counter()
    every = max(1, searches // saves)
    for number in range(searches):
        try:
            if number % every == 0:
                app.documents.save("soak", f"d{number // every % 500}", text(number))
            app.documents.search("soak", WORDS[number % len(WORDS)])
        except HomingError as error:
            errors[error.code] += 1
    return errors


def clients(address: str, count: int, seconds: float) -> Counter[str]:
    """Clients that ask without pause until the time is over; what they were answered, by status and code."""
    told: Counter[str] = Counter()
    end = time.monotonic() + seconds

    def ask(number: int) -> None:
        # Certificates, which nobody asks for here, would take most of a megabyte of each client.
        with httpx2.Client(base_url=address, timeout=60, verify=False) as client:
            while time.monotonic() < end:
                number += 1
                answer = client.post("/search", json={"query": WORDS[number % len(WORDS)]})
                told[str(answer.status_code) if answer.is_success else answer.json()["error"]["code"]] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def stage(name: str, data: Path, half: Callable[[], Counter[str]]) -> None:
    """Do half of some work twice, and print what the process took before it, between the halves and after it."""
    before, began = taken(data), time.process_time()
    told = half()
    middle = taken(data)
    told += half()
    spent = round(time.process_time() - began, 1)
    found = {"stage": name, "cpu_s": spent, "before": before, "middle": middle, "after": taken(data), "answers": told}
    print(json.dumps(found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    share = 1.0 if parser.parse_args().full else 0.05
    # What fails on purpose is logged each time.
    logging.disable(logging.CRITICAL)
    share_arenas()
    searches, saves = int(20_000 * share), int(5_000 * share)
    settings = Settings(server=ServerSettings(waiting=1_000))
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        with homing.open(data, settings=settings, embedder=EveryThirdFails()) as app:
            stage("warm up", data, lambda: one_process(app, searches // 8, saves // 8))
            stage("one process", data, lambda: one_process(app, searches // 2, saves // 2))
            with live(create_app(app)) as address:
                stage("clients", data, lambda: clients(address, int(200 * share), 60 * share))
        # Threads that are needed no more end by themselves.
        time.sleep(2 * IDLE)
        print(json.dumps({"stage": "closed", "after": taken(data)}))


if __name__ == "__main__":
    main()
