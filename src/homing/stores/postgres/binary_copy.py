"""Rows in the format of COPY … (FORMAT binary): the fastest way in, and no text that could be misread.

Each field is its length and its bytes, big-endian. The rows are written here and not by the driver, which would turn
every number of an array into bytes one by one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from homing.database.postgres.driver import Connection

NULL = struct.pack(">i", -1)
_HEAD = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_END = struct.pack(">h", -1)
_PORTION = 1 << 18

_TEXT_OID, _BIGINT_OID, _SMALLINT_OID = 25, 20, 21
_integer = struct.Struct(">ii").pack
_bigint = struct.Struct(">iq").pack
_length = struct.Struct(">i").pack
_array = struct.Struct(">iiiii").pack


def integer(value: int) -> bytes:
    """An `integer`."""
    return _integer(4, value)


def bigint(value: int) -> bytes:
    """A `bigint`."""
    return _bigint(8, value)


def boolean(value: bool) -> bytes:
    """A `boolean`."""
    return b"\0\0\0\1\1" if value else b"\0\0\0\1\0"


def text(value: str | None) -> bytes:
    """A `text`, `json`, or NULL."""
    return NULL if value is None else field(value.encode())


def field(data: bytes) -> bytes:
    """Anything that is in its own binary form already."""
    return _length(len(data)) + data


def texts(values: Sequence[str]) -> bytes:
    """A `text[]`."""
    if not values:
        return field(struct.pack(">iii", 0, 0, _TEXT_OID))
    return field(_array(1, 0, _TEXT_OID, len(values), 1) + b"".join(field(value.encode()) for value in values))


def bigints(values: npt.NDArray[np.int64]) -> bytes:
    """A `bigint[]`."""
    return _numbers(values, _BIGINT_OID, ">i8")


def smallints(values: npt.NDArray[np.int64]) -> bytes:
    """A `smallint[]`."""
    return _numbers(values, _SMALLINT_OID, ">i2")


def _numbers(values: npt.NDArray[np.int64], oid: int, kind: str) -> bytes:
    if not len(values):
        return field(struct.pack(">iii", 0, 0, oid))
    items = np.empty(len(values), [("length", ">i4"), ("value", kind)])
    items["length"] = np.dtype(kind).itemsize
    items["value"] = values
    return field(_array(1, 0, oid, len(values), 1) + items.tobytes())


def copy(
    connection: Connection, table: str, columns: Sequence[str], rows: Iterable[Sequence[bytes]], *, fenced: bool = False
) -> None:
    """Write rows whose fields were made by the functions above. Into a fenced table they go by way of another."""
    listed = ", ".join(columns)
    if not fenced:
        _stream(connection, table, listed, rows)
        return
    # PostgreSQL does not COPY into a table with row-level security; an INSERT it checks row by row.
    waiting = f"incoming_{table}"
    connection.execute(f"CREATE TEMPORARY TABLE IF NOT EXISTS {waiting} (LIKE {table}) ON COMMIT DELETE ROWS")
    _stream(connection, waiting, listed, rows)
    connection.execute(f"INSERT INTO {table} ({listed}) SELECT {listed} FROM {waiting} ORDER BY {columns[0]}")
    connection.execute(f"TRUNCATE {waiting}")


def _stream(connection: Connection, table: str, listed: str, rows: Iterable[Sequence[bytes]]) -> None:
    count = struct.pack(">h", listed.count(",") + 1)
    portion = bytearray(_HEAD)
    with connection.cursor().copy(f"COPY {table} ({listed}) FROM STDIN (FORMAT binary)") as stream:
        for row in rows:
            portion += count
            for one in row:
                portion += one
            if len(portion) > _PORTION:
                stream.write(bytes(portion))
                portion.clear()
        stream.write(bytes(portion + _END))
