"""`.vectorized`: the note in a skill's folder that says what of it was indexed."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

NAME = ".vectorized"


def content_hash(content: bytes) -> str:
    """Names the exact content of a SKILL.md."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Marker:
    """What was indexed: when (milliseconds), how large the file was, its hash, and the model of its vector."""

    indexed_at: int
    size: int
    hash: str
    model: str

    @classmethod
    def read(cls, folder: Path) -> Marker | None:
        """The marker of a folder; None where there is none that can be read."""
        try:
            found = json.loads((folder / NAME).read_bytes())
            return cls(int(found["indexedAt"]), int(found["skillSize"]), str(found["skillHash"]), str(found["model"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def matches(self, size: int, content: str, model: str) -> bool:
        """Whether it speaks of this content and this model."""
        return (self.size, self.hash, self.model) == (size, content, model)

    def write(self, folder: Path) -> bool:
        """Put it into the folder, whole or not at all; False where the folder cannot be written."""
        fields = {"indexedAt": self.indexed_at, "skillSize": self.size, "skillHash": self.hash, "model": self.model}
        draft = folder / f"{NAME}.{os.getpid()}"
        try:
            draft.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
            os.replace(draft, folder / NAME)
        except OSError as error:
            draft.unlink(missing_ok=True) if os.access(folder, os.W_OK) else None
            log.info("%s cannot be written, the database alone remembers: %s", folder / NAME, error.strerror)
            return False
        return True


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def can_mark(folder: Path) -> bool:
    """Whether a marker could be written here."""
    return os.access(folder, os.W_OK) and not (folder / NAME).is_dir()
