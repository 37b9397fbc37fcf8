"""Every fault that an embedding model can have, and an app whose default model has it."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import homing
from homing.app import Homing
from homing.config import load
from homing.testing.loopback import Fault, LoopbackApi
from tests.effort import SOAK

T = TypeVar("T")

BACKGROUND = "homing.engine.batch"

REMOTE = '[embedding]\nprovider_id = "x"\nmodel = "text-embedding-3-small"\ndimensions = 64\n[providers.x]\n'
OPENAI = f'{REMOTE}type = "openai"\napi_key = "sk-right"\nbase_url = "%s/v1"\n'

FAULTS: dict[str, tuple[str, Fault | None, str]] = {
    "no key": (f'{REMOTE}type = "openai"\napi_key = "${{HOMING_TEST_NOT_SET}}"\n', None, "MODEL_NOT_READY"),
    "bad key": (OPENAI.replace("sk-right", "sk-wrong"), None, "INVALID_KEY"),
    "missing folder": ('models = "nowhere"\n[embedding]\nmodel = "all-MiniLM-L6-v2"\n', None, "MODEL_NOT_READY"),
    "misspelt type": (f'{REMOTE}type = "opnai"\napi_key = "k"\n', None, "MODEL_NOT_READY"),
    "misspelt name": ('[embedding]\nprovider_id = "nobody"\n', None, "MODEL_NOT_READY"),
    "down": (OPENAI, Fault(hang_up=True), "PROVIDER_UNAVAILABLE"),
    "slow": (f"{OPENAI}[search]\ndeadline = 1.0\n", Fault(), "TIMEOUT"),
    "wrong width": (OPENAI, Fault(rows=lambda rows: [row[:8] for row in rows]), "EMBEDDING_DIMENSION_MISMATCH"),
    "not a number": (OPENAI, Fault(rows=lambda rows: [[math.nan] * len(row) for row in rows]), "MALFORMED_ANSWER"),
}

OF_EACH_KIND = tuple(FAULTS) if SOAK else ("no key", "slow", "wrong width")
"""Before a model is asked, while it is, and in its answer. What every fault does is tested in Python; these are for the
other doors, which pass on what Python says."""


@dataclass(frozen=True)
class Faulty:
    """A model with a fault: the settings that name it; of a slow one, whether it was asked and what lets it answer."""

    fault: str
    settings: Path
    asked: threading.Event
    over: threading.Event

    def open(self, folder: Path) -> Homing:
        """An app whose default model it is."""
        return homing.open(folder, settings=load(self.settings, environ={}).settings)

    def release(self) -> None:
        """Let a slow model answer."""
        self.over.set()

    def hold(self) -> None:
        """Have a slow model be slow again."""
        self.over.clear()

    def begin(self, call: Callable[[], T]) -> Callable[[], T]:
        """Begin a call that waits for vectors, until it asks a slow model for them; what this returns ends it."""
        if self.fault != "slow":
            done = call()
            return lambda: done
        going = ThreadPoolExecutor(1).submit(call)
        assert self.asked.wait(120)

        def end() -> T:
            self.release()
            return going.result(120)

        return end

    def is_reason(self, reason: str | None) -> bool:
        """Whether an answer gives the fault as its reason."""
        # A model that failed a moment ago is left alone for a while.
        return reason in (f"vector:{FAULTS[self.fault][2]}", "vector:PROVIDER_UNAVAILABLE")


@contextmanager
def faulty(folder: Path, fault: str) -> Iterator[Faulty]:
    """A model with that fault, and a settings file that names it in the folder. A slow one answers when released."""
    text, always, _ = FAULTS[fault]
    asked, over = threading.Event(), threading.Event()
    if fault == "slow":

        def hold_back(answer: str) -> str:
            asked.set()
            return answer if over.wait(600) else ""

        always = Fault(text=hold_back)
    with LoopbackApi(key="sk-right", always=always) as api:
        file = folder / "homing.toml"
        file.write_text(text.replace("%s", api.url), encoding="utf-8")
        try:
            yield Faulty(fault, file, asked, over)
        finally:
            over.set()


@contextmanager
def opened(folder: Path, fault: str) -> Iterator[Homing]:
    """An app whose default model has that fault."""
    with faulty(folder, fault) as model, model.open(folder / "data") as app:
        yield app
        model.release()


def warnings(records: list[logging.LogRecord]) -> list[str]:
    """What was warned of, and worse; the background worker aside, which may say it at any time, once."""
    said = [one for one in records if one.levelno >= logging.WARNING]
    assert len([one for one in said if one.name == BACKGROUND]) <= 1
    assert not [one for one in said if one.exc_info]
    return [one.getMessage() for one in said if one.name != BACKGROUND]
