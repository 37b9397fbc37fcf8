"""Who writes and embeds in one folder beside others, in a thread or in a process."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from homing.stores.lance import Address, LanceStore
from homing.testing.store_contract import MODEL, WIDTH, record
from tests.stores.lance.embedding import NEW, NEW_WIDTH, embed


def insert(folder: str, me: str, locked: str, turns: str) -> None:
    """Insert the same new ids as somebody else does at the same moment, turn by turn."""

    class Elsewhere(Address):
        """The same data as another machine sees it, which our lock does not reach."""

        @property
        def lock(self) -> Path:
            return Path(folder).parent / f"lock-of-{me}"

    store = LanceStore(Address.of_folder(folder) if locked == "locked" else Elsewhere(folder, Path(folder)))
    for turn in range(int(turns)):
        # Both begin each turn at the same moment.
        Path(f"{folder}-{me}-{turn}").touch()
        while len(list(Path(folder).parent.glob(f"*-*-{turn}"))) < 2:
            time.sleep(0.001)
        store.upsert([record(f"{turn}-{n}", 1, n, text=f"来自 {me}") for n in range(40)])
    store.close()


def embed_again_and_again(folder: str, turns: str) -> None:
    """Give vectors of two models to whatever lacks one."""
    store = LanceStore(folder)
    print("ready", flush=True)
    for _ in range(int(turns)):
        embed(store, MODEL, WIDTH)
        embed(store, NEW, NEW_WIDTH)
    store.close()


def started(work: str, *arguments: object) -> subprocess.Popen[str]:
    """A process that does one of these."""
    code = f"import sys; from tests.stores.lance.rivals import {work}; {work}(*sys.argv[1:])"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
