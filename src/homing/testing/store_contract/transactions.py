"""Records and rows of one database change together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from homing.database import Database, Transaction
from homing.stores.store import Store
from homing.testing.store_contract.samples import Opened, ids, record, vector

TABLES = "CREATE TABLE pages(name TEXT PRIMARY KEY, edition INT64 NOT NULL)"


class TakenBackError(Exception):
    """What a test raises to take a transaction back."""


def edition(transaction: Transaction) -> int:
    """What the row of the tests says; 0 where there is none."""
    return int(next((number for (number,) in transaction.rows("SELECT edition FROM pages")), 0))


def next_edition(transaction: Transaction) -> int:
    """Count the row of the tests up."""
    [(number,)] = transaction.rows(
        "INSERT INTO pages(name, edition) VALUES ($1, 1) "
        "ON CONFLICT (name) DO UPDATE SET edition = pages.edition + 1 RETURNING edition",
        "page",
    )
    return int(number)


class TransactionContract(Opened):
    """`write` and `delete` inside a transaction. For stores that have a database."""

    @pytest.fixture
    def rows(self, store: Store) -> Database:
        """The database of the store, with an empty table beside the store's."""
        database = store.database
        assert database is not None
        database.migrate("contract", [TABLES])
        database.write(lambda transaction: transaction.rows("DELETE FROM pages"))
        return database

    def test_records_and_rows_are_written_together(self, store: Store, rows: Database) -> None:
        def work(transaction: Transaction) -> int:
            next_edition(transaction)
            return store.write([record("a", text="打开灯", n=1), record("b", text="other")], transaction)

        assert rows.write(work, "things") == 2
        assert rows.read(edition) == 1
        assert store.texts("things", ["a", "b"]) == {"a": "打开灯", "b": "other"}
        assert ids(store.search_words("things", "打开", 10).found) == ["a"]
        assert store.check() == []

    def test_what_is_taken_back_leaves_nothing(self, store: Store, rows: Database) -> None:
        def work(transaction: Transaction) -> None:
            next_edition(transaction)
            store.write([record("a", text="打开灯")], transaction)
            raise TakenBackError

        with pytest.raises(TakenBackError):
            rows.write(work, "things")
        assert rows.read(edition) == 0
        assert store.texts("things", ["a"]) == {}
        assert store.search_words("things", "打开", 10).found == ()
        assert store.collections() == []
        assert store.check() == []

    def test_a_change_that_is_taken_back_leaves_text_words_and_vector(self, store: Store, rows: Database) -> None:
        store.write([record("a", 1, text="打开灯"), record("b", 0, 1, text="关闭灯")])

        def work(transaction: Transaction) -> None:
            store.write([record("a", text="读取温度")], transaction)
            assert store.delete("things", ["b", "nobody"], transaction) == 1
            raise TakenBackError

        with pytest.raises(TakenBackError):
            rows.write(work)
        assert store.texts("things", ["a", "b"]) == {"a": "打开灯", "b": "关闭灯"}
        assert ids(store.search_vector("things", vector(1), 10)) == ["a", "b"]
        assert ids(store.search_words("things", "打开", 10).found) == ["a"]
        assert store.search_words("things", "温度", 10).found == ()
        assert [(info.records, info.embedded) for info in store.collections()] == [(2, 2)]
        assert store.check() == []

    def test_nobody_sees_it_before_it_is_committed(self, store: Store, rows: Database, other: Store) -> None:
        def work(transaction: Transaction) -> None:
            store.write([record("a", text="打开灯")], transaction)
            assert other.texts("things", ["a"]) == {}
            assert other.search_words("things", "打开", 10).found == ()

        rows.write(work)
        assert other.texts("things", ["a"]) == {"a": "打开灯"}

    def test_a_record_changes_several_times_in_one_transaction(self, store: Store, rows: Database) -> None:
        def work(transaction: Transaction) -> None:
            store.write([record("a", text="first"), record("b", text="second", collection="others")], transaction)
            store.write([record("a", text="third")], transaction)
            assert store.delete("things", ["a"], transaction) == 1
            assert store.delete("things", ["a"], transaction) == 0
            store.write([record("a", text="fourth", n=1)], transaction)
            store.write([record("a", text="fourth", n=2)], transaction)

        rows.write(work)
        assert [(one.text, one.metadata) for one in store.records("things")] == [("fourth", {"n": 2})]
        for word, found in (("first", []), ("third", []), ("fourth", ["a"])):
            assert ids(store.search_words("things", word, 10).found) == found
        assert [(info.name, info.records) for info in store.collections()] == [("others", 1), ("things", 1)]
        assert store.check() == []

    def test_rows_and_records_that_many_change_stay_together(self, store: Store, rows: Database, other: Store) -> None:
        def save(turn: int) -> None:
            used = (store, other)[turn % 2]
            assert used.database is not None

            def work(transaction: Transaction) -> None:
                number = next_edition(transaction)
                used.write([record("page", text=f"edition {number}"), record(f"{number}", text="old")], transaction)
                used.delete("things", [f"{number - 3}"], transaction)

            used.database.write(work, "things")

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(save, range(2 * self.rounds)))
        last = 2 * self.rounds
        assert rows.read(edition) == last
        assert store.texts("things", ["page"]) == {"page": f"edition {last}"}
        assert store.ids("things") == [*sorted(str(last - one) for one in range(3)), "page"]
        assert store.check() == []
