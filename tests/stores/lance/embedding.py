"""What a worker does with a store: vectors that tell of which text they were made, put where they are missing."""

from __future__ import annotations

import hashlib

import numpy as np

from homing.records import text_hash
from homing.stores.store import NewVector, Store
from homing.vectors import Vector

NEW = "contract/new@5"
NEW_WIDTH = 5


def made_of(text: str, width: int = NEW_WIDTH) -> Vector:
    """A vector that tells of which text it was made."""
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
    row = np.random.default_rng(seed).standard_normal(width).astype(np.float32)
    return row / np.float32(np.linalg.norm(row))


def new(name: str, text: str, width: int = NEW_WIDTH) -> NewVector:
    """The vector of a text that was read a moment ago."""
    return NewVector(name, text_hash(text), made_of(text, width))


def embed(store: Store, model: str = NEW, width: int = NEW_WIDTH, collection: str = "things") -> set[str]:
    """What a worker does: vectors for everything that lacks one of a model."""
    texts = store.texts(collection, store.missing(collection, model))
    return store.put_vectors(collection, model, [new(name, text, width) for name, text in texts.items()])


def models(store: Store, collection: str = "things") -> list[tuple[str, int, bool]]:
    return [(info.model, info.embedded, info.served) for info in store.models(collection)]
