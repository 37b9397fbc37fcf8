"""pgvector's `vector` on the wire: its width and a reserved word as 16-bit, then 32-bit floats, all big-endian."""

from __future__ import annotations

import struct

import numpy as np

from homing.database.postgres.driver import Connection, psycopg
from homing.vectors import Matrix, Vector

_HEAD = struct.Struct(">HH")


class _Dumper(psycopg.adapt.Dumper):
    format = psycopg.pq.Format.BINARY

    def dump(self, row: Vector) -> bytes:
        return _HEAD.pack(row.size, 0) + row.astype(">f4").tobytes()


class _Loader(psycopg.adapt.Loader):
    format = psycopg.pq.Format.BINARY

    def load(self, data: psycopg.abc.Buffer) -> Vector:
        return np.frombuffer(bytes(data), ">f4", offset=_HEAD.size).astype(np.float32)


def register(connection: Connection, oid: int) -> None:
    """Let this connection send and receive vectors, whose type has this number in its database."""
    dumper = type("VectorDumper", (_Dumper,), {"oid": oid})
    connection.adapters.register_dumper(np.ndarray, dumper)
    connection.adapters.register_loader(oid, _Loader)


def packed(rows: Matrix) -> list[bytes]:
    """Many vectors at once, each as it goes into a binary COPY."""
    head = _HEAD.pack(rows.shape[1], 0)
    wide = rows.astype(">f4")
    return [head + row.tobytes() for row in wide]
