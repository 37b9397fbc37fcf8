"""One folder (or prefix in object storage) of LanceDB tables, shared by threads and processes.

A table named `homing` marks the place as ours and says in which format it is. A place that has other things in it but
not that mark is left as it is.

Every write to a table is one commit: all of it or nothing. Writers hold the lock of the database; readers need nothing
and always see the newest commit.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from homing.database.locking import WAIT, WriteLock
from homing.database.private import private_folder
from homing.errors import StoreCorrupt, StoreError, StoreReadOnly, StoreTooNew, StoreTooOld
from homing.stores.lance.engine import (
    LOCK,
    Address,
    ArrowSchema,
    ArrowTable,
    Handle,
    Reader,
    arrow,
    durable,
    lancedb,
    part,
    run,
    translated,
)

logger = logging.getLogger(__name__)

MARK = "homing"
"""The table that marks a place; the catalog of collections keeps its rows in it."""
FORMAT = 2
_FORMAT_KEY = b"homing.format"
KEY = {"lance-schema:unenforced-primary-key": "true"}
"""On the key column. Of two writers that insert one key at once, Lance then lets the second one see the first, also
where no lock reaches: two machines on one bucket."""


@dataclass(frozen=True, slots=True)
class Index:
    """An index that a table gets when it has so many rows. Below that, reading everything is as fast."""

    column: str
    kind: Callable[[], Any]
    from_rows: int


def lookup_indexes(from_rows: int) -> tuple[Index, Index]:
    """Rows by key, for fetching, replacing and deleting; and by the texts in their list of attributes."""
    return (
        Index("id", lambda: part("index").BTree(), from_rows),
        Index("attributes", lambda: part("index").LabelList(), from_rows),
    )


def words_index() -> Index:
    """Words separated by spaces, ranked by BM25. They are taken as they are: our tokenizer has done the rest.

    Rows that it does not have yet are read with its tokenizer; without any index LanceDB would use its own, which takes
    `C++` for `C` and an emoji for nothing. So a table has it from the beginning.
    """
    as_they_are = {"lower_case": False, "stem": False, "remove_stop_words": False, "ascii_folding": False}
    return Index(
        "words",
        lambda: part("index").FTS(
            base_tokenizer="whitespace", max_token_length=None, with_position=False, **as_they_are
        ),
        0,
    )


def key_field(name: str = "id") -> Any:
    """The column that tells rows apart."""
    return arrow().field(name, arrow().string(), nullable=False, metadata=KEY)


def quoted(text: str) -> str:
    """A text as a literal of Lance's SQL."""
    return "'" + text.replace("'", "''") + "'"


def any_of(column: str, values: list[str]) -> str:
    """The condition that a column has one of these values."""
    return f"{column} IN ({', '.join(map(quoted, values))})" if values else "false"


class Table:
    """A table that exists. Reads may be made by several threads at once.

    Whatever is asked, the newest commit is looked for first. In object storage each look is a request; who asks several
    things in a row asks the table that `pinned` gives.
    """

    def __init__(self, database: Database, name: str, handle: Handle, *, follows: bool = True) -> None:
        self.database = database
        self.name = name
        self.handle = handle
        self._follows = follows

    @cached_property
    def reader(self) -> Reader:
        """For searches; see `engine.run`."""
        return self.database.reader(self.name, follows=self._follows)

    def pinned(self) -> Table:
        """The table as of the newest commit now, or of a later one that was made through it: for those who write."""
        if not self._follows:
            with translated(self.database.address):
                self.handle.checkout_latest()
                if "reader" in self.__dict__:
                    run(self.reader.checkout_latest())
            return self
        if "_pinned" in self.__dict__:
            return self._pinned.pinned()
        return self._pinned

    @cached_property
    def _pinned(self) -> Table:
        with translated(self.database.address):
            return Table(self.database, self.name, self.database.handle(self.name, follows=False), follows=False)

    @property
    def version(self) -> int:
        """The newest commit."""
        with translated(self.database.address):
            return int(self.handle.version)

    @property
    def schema(self) -> ArrowSchema:
        """The columns as of the newest commit."""
        with translated(self.database.address):
            return self.handle.schema

    def count(self, condition: str | None = None) -> int:
        """How many rows there are, or how many fulfil a condition."""
        with translated(self.database.address):
            return int(self.handle.count_rows(condition))

    def has(self, condition: str) -> bool:
        """Whether any row fulfils a condition."""
        with translated(self.database.address):
            return len(self.handle.search().where(condition).select(["id"]).limit(1).to_arrow()) > 0

    def upsert(self, rows: ArrowTable, *, key: str = "id") -> None:
        """Write rows, each replacing the one with its key. The lock must be held."""
        with self._writing():
            builder = self.handle.merge_insert(key).when_matched_update_all().when_not_matched_insert_all()
            # Rows without a vector are meant: LanceDB would take them for broken ones.
            builder.execute(rows, on_bad_vectors="null")

    def replace(self, rows: ArrowTable, where: str) -> int:
        """Put rows in the place of those with their id that fulfil a condition; returns how many there were.

        The condition calls the old row `target` and the new one `source`. The lock must be held.
        """
        with self._writing():
            builder = self.handle.merge_insert("id").when_matched_update_all(where=where)
            return int(builder.execute(rows, on_bad_vectors="null").num_updated_rows)

    def delete(self, condition: str) -> int:
        """Remove the rows that fulfil a condition; returns how many there were. The lock must be held."""
        with self._writing():
            return int(self.handle.delete(condition).num_deleted_rows)

    def add_columns(self, fields: Sequence[Any]) -> None:
        """New columns, empty in every row. The lock must be held."""
        with self._writing():
            self.handle.add_columns(arrow().schema(fields))

    def drop_columns(self, names: Sequence[str]) -> None:
        """Some columns less. The lock must be held."""
        with self._writing():
            self.handle.drop_columns(names)

    def note(self, notes: Mapping[str, Mapping[str, str]]) -> None:
        """Write something down about columns, in one commit. The lock must be held."""
        with self._writing():
            self.handle.update_field_metadata(
                *({"path": column, "metadata": dict(noted)} for column, noted in notes.items())
            )

    def add_index(self, index: Index) -> None:
        """Index a column, anew where it has an index. Needs no lock."""
        with translated(self.database.address):
            self.handle.create_index(index.column, config=index.kind(), replace=True)

    def snapshot(self) -> Handle:
        """A handle that keeps seeing the newest commit as of now, until it is cleaned up."""
        with translated(self.database.address):
            handle = self.database.handle(self.name)
            handle.checkout(handle.version)
            return handle

    def frozen_reader(self) -> Reader:
        """The same for searches."""
        with translated(self.database.address):
            reader = self.database.reader(self.name)
            run(reader.checkout(run(reader.version())))
            return reader

    def restore(self, version: int) -> None:
        """Make an older commit the newest. The lock must be held."""
        with self._writing():
            handle = self.database.handle(self.name)
            if handle.version != version:
                handle.checkout(version)
                handle.restore()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        folder = self.database.address.folder
        with translated(self.database.address), durable(folder and folder / f"{self.name}.lance"):
            yield


class Database:
    """Tables by name. Reads see every commit that was made before they began, by whomever.

    A process that was forked after opening must open its own: the library's threads do not survive a fork.
    """

    def __init__(self, address: Address | str | Path, *, wait: float = WAIT) -> None:
        self.address = address if isinstance(address, Address) else Address.of_folder(address)
        self._process = os.getpid()
        self._closed = False
        self._prepare_folder()
        self.lock = WriteLock(self.address.lock, wait=wait)
        with translated(self.address):
            self._options = {
                "read_consistency_interval": timedelta(0),
                "storage_options": dict(self.address.options) or None,
                "session": lancedb().Session(),
            }
            self._connection = lancedb().connect(self.address.uri, **self._options)
            self._reading = run(lancedb().connect_async(self.address.uri, **self._options))
            # The same without looking for the newest commit at every call.
            steady = self._options | {"read_consistency_interval": None}
            self._steady = lancedb().connect(self.address.uri, **steady)
            self._steady_reading = run(lancedb().connect_async(self.address.uri, **steady))
            self.mark = self._marked()

    def table(self, name: str) -> Table | None:
        """The table of that name, if there is one."""
        self.check_open()
        with translated(self.address):
            if name not in self.names():
                return None
            return Table(self, name, self.handle(name))

    def handle(self, name: str, *, follows: bool = True) -> Handle:
        """LanceDB's own handle of a table that exists; without `follows` it stays at the commit it was opened at."""
        self.check_open()
        return (self._connection if follows else self._steady).open_table(name)

    def reader(self, name: str, *, follows: bool = True) -> Reader:
        """LanceDB's other handle of it, for searches."""
        self.check_open()
        return run((self._reading if follows else self._steady_reading).open_table(name))

    def create(self, name: str, schema: ArrowSchema, rows: ArrowTable | None = None) -> Table:
        """A new table with these rows, in one commit. The lock must be held."""
        self.check_open()
        folder = self.address.folder
        with translated(self.address), durable(folder and folder / f"{name}.lance"):
            made = self._steady.create_table(name, rows, schema, on_bad_vectors="null")
            return Table(self, name, made, follows=False)

    def drop(self, name: str) -> None:
        """Remove a table and what is left of one that was never finished. The lock must be held."""
        self.check_open()
        with translated(self.address):
            if name in self.names():
                self._connection.drop_table(name, ignore_missing=True)

    def names(self) -> list[str]:
        """The tables there are, unfinished ones included."""
        self.check_open()
        found: list[str] = []
        with translated(self.address):
            token: str | None = None
            while True:
                page = self._connection.list_tables(page_token=token, limit=1_000)
                found += page.tables
                token = page.page_token
                if not token or not page.tables:
                    return found

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock: nobody else on this machine writes meanwhile."""
        self.check_open()
        with self.lock.held():
            self.check_open()
            yield

    def close(self) -> None:
        """Refuse further calls. What was written is in place already."""
        self._closed = True

    def check_open(self) -> None:
        """Raises where the database was closed, or belongs to the process this one was forked from."""
        if self._closed:
            raise StoreError(f"{self.address} is closed; open it again")
        if self._process != os.getpid():
            raise StoreError(f"{self.address} was opened before this process was forked; open it again in this process")

    def _prepare_folder(self) -> None:
        folder = self.address.folder
        if folder is None:
            return
        if folder.exists() and not folder.is_dir():
            raise StoreCorrupt(
                f"{folder} is a file where a folder of LanceDB tables is expected; give another path",
                details={"path": str(folder)},
            )
        try:
            private_folder(folder)
        except OSError as error:
            raise StoreReadOnly(
                f"the folder {folder} cannot be created: {error.strerror}", details={"path": str(folder)}
            ) from error

    def _marked(self) -> Table:
        if MARK not in self.names() or self._unfinished():
            with self.lock.held():
                # Another process may have made it while this one waited for the lock.
                if MARK not in self.names() or self._unfinished():
                    self._make_mark()
        handle = self._connection.open_table(MARK)
        found = (handle.schema.metadata or {}).get(_FORMAT_KEY)
        if found is None:
            raise self._foreign([MARK])
        if int(found) > FORMAT:
            raise StoreTooNew(
                f"{self.address} has format {int(found)}, this Homing knows {FORMAT}; upgrade Homing to open it",
                details={"path": str(self.address), "found": int(found), "known": FORMAT},
            )
        if int(found) < FORMAT:
            raise StoreTooOld(
                f"{self.address} was made by the first edition of Homing, which this one does not read; "
                "move it away and add your texts again",
                details={"path": str(self.address), "found": int(found), "known": FORMAT},
            )
        return Table(self, MARK, handle)

    def _unfinished(self) -> bool:
        """Whether the process that was making the mark was killed: it has neither a version nor any data."""
        folder = self.address.folder
        if folder is None:
            return False
        mark = folder / f"{MARK}.lance"
        return mark.is_dir() and not any(mark.glob("_versions/*.manifest")) and not any(mark.glob("data/*"))

    def _make_mark(self) -> None:
        others = self._others()
        if others:
            raise self._foreign(others)
        if MARK in self.names():
            logger.warning("%s: finishing what a killed process began", self.address)
            self._connection.drop_table(MARK, ignore_missing=True)
        self._connection.create_table(MARK, schema=mark_schema())

    def _others(self) -> list[str]:
        """What is here besides our own mark and lock."""
        folder = self.address.folder
        if folder is None:
            return sorted(name for name in self.names() if name != MARK)
        return sorted(entry.name for entry in folder.iterdir() if entry.name not in {LOCK, f"{MARK}.lance"})

    def _foreign(self, found: list[str]) -> StoreCorrupt:
        return StoreCorrupt(
            f"{self.address} is not a Homing store: it holds {', '.join(found[:3])}; give another place",
            details={"path": str(self.address), "found": found[:10]},
        )


def mark_schema() -> ArrowSchema:
    """The columns of the marking table; see `catalog`."""
    pa = arrow()
    fields: list[Any] = [
        key_field("collection"),
        pa.field("table", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("since", pa.float64(), nullable=False),
    ]
    return pa.schema(fields, metadata={_FORMAT_KEY: str(FORMAT).encode()})
