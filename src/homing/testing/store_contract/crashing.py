"""A process that writes is killed, and whoever opens the store next finds whole calls only."""

from __future__ import annotations

import subprocess
import sys

import pytest

from homing.testing.store_contract.samples import Opened, OpenStore, ids, vector

SIZE = 40
WRITER = f"""
import sys
from homing.stores import open_store
from homing.testing.store_contract.samples import record
store = open_store(sys.argv[1])
for call in range(10_000):
    store.upsert([record(f"{{call:05d}}-{{one:02d}}", 1, one, text=f"词{{one}}", call=call) for one in range({SIZE})])
    print(call, flush=True)
"""


class CrashContract(Opened):
    """For stores that `open_store` knows by a URL: give the fixture `store_url` beside `open_store`."""

    @pytest.fixture
    def store_url(self) -> str:
        """The URL of the data that `open_store` opens."""
        raise NotImplementedError("override the fixture `store_url`")

    @pytest.mark.parametrize("calls", [1, 3, 7])
    def test_a_killed_writer_leaves_whole_calls_and_nothing_acknowledged_is_lost(
        self, open_store: OpenStore, store_url: str, calls: int
    ) -> None:
        acknowledged = -1
        with subprocess.Popen([sys.executable, "-c", WRITER, store_url], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for line in writer.stdout:
                acknowledged = int(line)
                if acknowledged + 1 >= calls:
                    break
            writer.kill()
        store = open_store()
        try:
            written = [record.metadata["call"] for record in store.records("things")]
            assert all(written.count(call) == SIZE for call in set(written))
            assert set(range(acknowledged + 1)) <= set(written)
            assert len(ids(store.search("things", vector(1), limit=1_000))) == len(written)
            assert store.check() == []
        finally:
            store.close()
