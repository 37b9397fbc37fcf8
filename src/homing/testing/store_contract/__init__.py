"""What every store promises, as tests that any engine runs.

    class TestMyStore(StoreContract, LegsContract, ModelsContract, TransactionContract):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda: MyStore(tmp_path / "data")     # called again, it opens the same data

A store without a database leaves out TransactionContract. `CrashContract` and `ConcurrencyContract` run writers in
processes of their own, and need the fixture `store_url` beside.

The suite closes what it opens. It asks only what `homing.stores.Store` promises, nothing about an engine.
"""

import pytest

# Before the parts are imported: only then does pytest say what differed when one of them fails.
for _part in ("samples", "writing", "searching", "models", "transactions", "concurrency"):
    pytest.register_assert_rewrite(f"{__name__}.{_part}")

from homing.testing.store_contract.concurrency import (  # noqa: E402
    ConcurrencyContract,
    CrashContract,
    SharingContract,
    ThreadsContract,
)
from homing.testing.store_contract.models import ModelsContract  # noqa: E402
from homing.testing.store_contract.samples import MODEL, WIDTH, OpenStore, ids, only, record, vector  # noqa: E402
from homing.testing.store_contract.searching import LegsContract, SearchingContract  # noqa: E402
from homing.testing.store_contract.transactions import TransactionContract  # noqa: E402
from homing.testing.store_contract.writing import WritingContract  # noqa: E402

__all__ = [
    "MODEL",
    "WIDTH",
    "ConcurrencyContract",
    "CrashContract",
    "LegsContract",
    "ModelsContract",
    "OpenStore",
    "StoreContract",
    "ThreadsContract",
    "TransactionContract",
    "ids",
    "only",
    "record",
    "vector",
]


class StoreContract(WritingContract, SearchingContract, SharingContract):
    """Subclass it and give it the fixture `open_store`."""
