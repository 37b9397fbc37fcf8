"""One LanceDB table with a key column: what every writer and reader of such tables does, whatever its other columns.

Every write is one commit: all of it or nothing. Writers hold the lock of the database; readers need nothing and always
see the newest commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from homing.stores.lance.durable import durable
from homing.stores.lance.engine import ArrowSchema, ArrowTable, Handle, Reader, arrow, run
from homing.stores.lance.faults import translated
from homing.stores.lance.indexes import Index

if TYPE_CHECKING:
    from homing.stores.lance.database import Database

KEY = {"lance-schema:unenforced-primary-key": "true"}
"""On the key column. Of two writers that insert one key at once, Lance then lets the second one see the first, also
where no lock reaches: two machines on one bucket."""


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
    """A table that exists. Reads may be made by several threads at once."""

    def __init__(self, database: Database, name: str, handle: Handle) -> None:
        self.database = database
        self.name = name
        self.handle = handle

    @cached_property
    def reader(self) -> Reader:
        """For searches; see `engine.run`."""
        return self.database.reader(self.name)

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
