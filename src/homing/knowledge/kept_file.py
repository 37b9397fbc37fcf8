"""What is remembered about a file, as a record beside its chunks."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from homing.files import FileText
from homing.knowledge.chunks import Chunk
from homing.knowledge.file_name import file_name
from homing.records import VectorRecord, text_hash


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file of a knowledge base. `embedded` is false while its chunks wait for the model: words find them."""

    name: str
    format: str
    characters: int
    chunks: int
    embedded: bool
    uploaded_at: float


@dataclass(frozen=True, slots=True)
class KeptFile:
    """One version of a file. `gone` is what was replaced or deleted, and is to be swept away."""

    version: str
    info: FileInfo
    digest: str
    gone: bool = False

    @property
    def chunk_ids(self) -> list[str]:
        """The ids of its chunks, in order."""
        return [f"{self.version}#{number}" for number in range(self.info.chunks)]

    def record(self, collection: str) -> VectorRecord:
        """Itself, as a store keeps it."""
        told: dict[str, Any] = {**asdict(self.info), "digest": self.digest, "gone": self.gone}
        return VectorRecord(self.version, collection, None, told)


def new_version(read: FileText, cut: Sequence[Chunk], *, embedded: bool) -> KeptFile:
    """A version of a file that was just read. Its name for the store sorts by time."""
    now = time.time()
    info = FileInfo(file_name(read.filename), read.format, len(read.text), len(cut), embedded, now)
    return KeptFile(f"{int(now * 1e6):016x}{secrets.token_hex(4)}", info, text_hash(read.text))


def kept_file(record: VectorRecord) -> KeptFile:
    """A version as it was remembered."""
    told = dict(record.metadata)
    digest, gone = told.pop("digest"), told.pop("gone")
    return KeptFile(record.id, FileInfo(**told), digest, gone)


def newest(versions: Iterable[KeptFile]) -> dict[str, KeptFile]:
    """The version of each file that counts: the latest, where two were uploaded at the same time."""
    return {one.info.name: one for one in sorted(versions, key=lambda one: one.version) if not one.gone}
