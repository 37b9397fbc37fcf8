"""Remembers vectors, so that no text is embedded twice by the same model."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from homing.embedders.provider import EmbeddingProvider, Kind
from homing.embedders.texts import checked_texts
from homing.embedders.vector_cache import VectorCache
from homing.embedders.wrapper import Wrapper
from homing.errors import DimensionMismatch, InvalidArgument, MalformedAnswer
from homing.vectors import Matrix, Vector, pack

MAX_BYTES = 1 << 30
MEMORY_BYTES = 8 << 20


class Cached(Wrapper):
    """The same provider, which is asked only for texts it has not embedded before.

    Rows are kept in the SQLite file `path` under the provider's identity and a hash of the text, so one file serves
    every collection, model and process; it grows to about `max_bytes`, then the longest unread rows go. The latest rows
    also stay in memory (about `memory_bytes`), where a repeated query costs microseconds. A file that is damaged or
    cannot be written costs a warning and the speed, never an answer.

    `by_kind` says whether the provider embeds queries differently from documents; where it does not, pass False and a
    query finds what a document left. Nothing is kept of a call that fails.
    """

    def __init__(
        self,
        provider: EmbeddingProvider,
        path: Path | str,
        *,
        by_kind: bool = True,
        max_bytes: int = MAX_BYTES,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        if max_bytes < 0 or memory_bytes < 0:
            raise InvalidArgument("max_bytes and memory_bytes are sizes and cannot be negative")
        super().__init__(provider)
        self._file = VectorCache(path, max_bytes=max_bytes)
        self._memory = _RecentRows(memory_bytes)
        self._by_kind = by_kind

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """One row per text, from memory, from the file, or from the provider, which gets each missing text once."""
        keys = self._keys(checked_texts(texts), kind)
        rows: dict[bytes, Vector] = self._memory.get(keys)
        if missing := _without(keys, texts, rows):
            rows |= self._from_file(list(missing))
        if missing := _without(keys, texts, rows):
            rows |= self._from_provider(missing, kind)
        matrix = np.empty((len(keys), self.dimensions), dtype=np.float32)
        for position, key in enumerate(keys):
            matrix[position] = rows[key]
        return matrix

    def close(self) -> None:
        """Closes the file, and the wrapped provider where it can be closed."""
        self._file.close()
        super().close()

    def _keys(self, texts: Sequence[str], kind: Kind) -> list[bytes]:
        space = f"{self.id}\0{kind if self._by_kind else ''}".encode()
        salt = hashlib.blake2b(space, digest_size=32).digest()
        return [
            hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20, key=salt).digest() for text in texts
        ]

    def _from_file(self, keys: list[bytes]) -> dict[bytes, Vector]:
        width = 4 * self.dimensions
        sound = {
            key: np.frombuffer(row, dtype="<f4").astype(np.float32)
            for key, row in self._file.get(keys).items()
            if len(row) == width
        }
        # A row that is not of unit length was not written by us: embed the text again.
        rows = {key: row for key, row in sound.items() if abs(float(row @ row) - 1) < 1e-3}
        self._memory.put(rows)
        return rows

    def _from_provider(self, missing: Mapping[bytes, str], kind: Kind) -> dict[bytes, Vector]:
        answer = self._provider.embed(list(missing.values()), kind=kind)
        if answer.ndim != 2 or len(answer) != len(missing):
            raise MalformedAnswer(f"{self.id}: asked for {len(missing)} vectors, got an array of shape {answer.shape}")
        if answer.shape[1] != self.dimensions:
            raise DimensionMismatch(
                f"{self.id}: got vectors of {answer.shape[1]} dimensions where {self.dimensions} are expected",
                details={"expected": self.dimensions, "actual": int(answer.shape[1])},
            )
        rows = {key: row.copy() for key, row in zip(missing, answer, strict=True)}
        self._memory.put(rows)
        self._file.put({key: pack(row) for key, row in rows.items()})
        return rows


class _RecentRows:
    """The rows that were used last, up to a number of bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._rows: OrderedDict[bytes, Vector] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        found: dict[bytes, Vector] = {}
        with self._lock:
            for key in keys:
                if (row := self._rows.get(key)) is not None:
                    self._rows.move_to_end(key)
                    found[key] = row
        return found

    def put(self, rows: Mapping[bytes, Vector]) -> None:
        with self._lock:
            for key, row in rows.items():
                if (old := self._rows.pop(key, None)) is not None:
                    self._bytes -= old.nbytes
                self._rows[key] = row
                self._bytes += row.nbytes
            while self._bytes > self._max_bytes:
                _, old = self._rows.popitem(last=False)
                self._bytes -= old.nbytes


def _without(keys: Sequence[bytes], texts: Sequence[str], rows: Mapping[bytes, Vector]) -> dict[bytes, str]:
    return {key: text for key, text in zip(keys, texts, strict=True) if key not in rows}
