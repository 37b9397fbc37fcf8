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
from homing.testing.store_contract.concurrency import SharingContract
from homing.testing.store_contract.searching import SearchingContract
from homing.testing.store_contract.writing import WritingContract
from tests.conftest import Database
from tests.effort import SOAK, times
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


class OfAUser(Emptied):
    rounds = times(10, in_full=60)

    @pytest.fixture
    def open_store(self, emptied: Opened) -> OpenStore:
        return lambda: emptied(row_security=True).for_user("李雷")


@pytest.mark.slow
class TestStoreOfAUser(OfAUser, WritingContract, LegsContract, TransactionContract, ThreadsContract):
    """What a store writes and how its legs find it, behind the fence."""


if SOAK:

    class TestTheRestOfAUser(OfAUser, SearchingContract, SharingContract, ModelsContract):
        """And the rest of the contract, whose statements are the same with a fence around them."""
