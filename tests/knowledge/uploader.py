"""A process that uploads one version of a file after the other, until it is killed: `uploader.py URL`."""

from __future__ import annotations

import sys

from homing.knowledge import KnowledgeBase
from homing.stores.registry import open_store
from homing.testing.fake import FakeEmbedder


def version(number: int) -> bytes:
    """A file whose every sentence says of which version it is, now long, now short."""
    return (f"版本{number}的句子，大家都有的词。" * (1000 if number % 2 else 150)).encode()


if __name__ == "__main__":
    store = open_store(sys.argv[1])
    base = KnowledgeBase("alice", store=store, embedder=FakeEmbedder())
    for number in range(10_000):
        base.upload(version(number), "a.txt")
        print(number, flush=True)
