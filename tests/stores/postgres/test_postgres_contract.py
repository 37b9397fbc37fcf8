"""The store contract on PostgreSQL, for everybody's store and for that of one user behind the fence."""

from __future__ import annotations

import pytest

from homing.testing.store_contract import (
    ConcurrencyContract,
    CrashContract,
    LegsContract,
    ModelsContract,
    OpenStore,
    StoreContract,
    ThreadsContract,
    TransactionContract,
)
from tests.conftest import Database
from tests.effort import times
from tests.forked import Forks
from tests.stores.postgres.emptied import Emptied, Opened


class TestPostgresStore(
    Emptied, Forks, StoreContract, LegsContract, ModelsContract, TransactionContract, ConcurrencyContract, CrashContract
):
    rounds = times(10, in_full=60)

    @pytest.fixture
    def open_store(self, emptied: Opened) -> OpenStore:
        return emptied

    @pytest.fixture
    def store_url(self, database: Database, schema: str) -> str:
        return f"{database.url}?schema={schema}"


@pytest.mark.slow
class TestStoreOfAUser(Emptied, StoreContract, LegsContract, ModelsContract, TransactionContract, ThreadsContract):
    rounds = times(10, in_full=60)

    @pytest.fixture
    def open_store(self, emptied: Opened) -> OpenStore:
        return lambda: emptied(row_security=True).for_user("李雷")
