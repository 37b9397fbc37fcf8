"""Advisory locks: numbers that stand for something that one transaction, or one process, has at a time."""

from __future__ import annotations

import hashlib


def lock_number(schema: str, what: str, *names: str) -> int:
    """The lock that stands for something in a schema."""
    named = "\0".join(("homing", schema, what, *names))
    digest = hashlib.blake2b(named.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
