"""Killed at any moment, there is the old file or the new one, and nothing of a third."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from homing.knowledge import CHUNKS, KnowledgeBase
from homing.stores.registry import open_store
from homing.stores.store import MultiUserStore, Store
from homing.testing.fake import FakeEmbedder
from homing.text.sentences import windows
from tests.forked import start_python
from tests.knowledge.conftest import Open
from tests.knowledge.uploader import version

pytestmark = pytest.mark.slow

UPLOADER = Path(__file__).with_name("uploader.py")
SAID = re.compile(r"版本(\d+)的")


def seen(base: KnowledgeBase) -> set[int]:
    """The versions that a search for a word of all of them finds, each with all of its chunks or there is an error."""
    found = base.search("大家都有的词", limit=500, min_similarity=None)
    by_version: Counter[int] = Counter()
    for hit in found:
        (told,) = set(map(int, SAID.findall(hit.text)))
        by_version[told] += 1
    for number, count in by_version.items():
        assert count == len(windows(version(number).decode()))
    return set(by_version)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_killed_upload_leaves_the_old_file_or_the_new_one(
    engine: str, tmp_path: Path, new_database: Callable[[], str]
) -> None:
    url = {
        "sqlite": lambda: f"sqlite:///{tmp_path}/homing.db",
        "postgres": new_database,
    }[engine]()
    for delay in (0.0, 0.013, 0.031, 0.05):
        done = -1
        with start_python([str(UPLOADER), url], stdout=subprocess.PIPE, text=True) as uploader:
            assert uploader.stdout is not None
            for line in uploader.stdout:
                done = int(line)
                if done >= 2:
                    time.sleep(delay)
                    break
            uploader.kill()
        store = open_store(url)
        base = KnowledgeBase("alice", store=store, embedder=FakeEmbedder())
        versions = seen(base)
        assert len(versions) == 1
        assert done <= versions.pop()
        assert [file.name for file in base.list()] == ["a.txt"]
        base.upload(b"the end", "a.txt")
        # Nothing is left behind, whoever was killed.
        own, collection = (
            (store.for_user("alice"), CHUNKS) if isinstance(store, MultiUserStore) else (store, f"{CHUNKS}:alice")
        )
        assert [record.text for record in own.records(collection)] == ["the end"]
        assert [file.name for file in base.list()] == ["a.txt"]
        store.close()


def test_whoever_searches_during_an_upload_sees_whole_versions(base: Open) -> None:
    one = base()
    one.upload(version(0), "a.txt")
    stop = threading.Event()
    wrong: list[BaseException] = []

    def search() -> None:
        try:
            while not stop.is_set():
                for hit in base().search("大家都有的词", limit=3, min_similarity=None):
                    assert hit.text
                    assert hit.metadata["fileName"] == "a.txt"
        except BaseException as error:
            wrong.append(error)

    searching = threading.Thread(target=search)
    searching.start()
    for number in range(1, 6):
        one.upload(version(number), "a.txt")
    stop.set()
    searching.join()
    assert not wrong
    assert seen(one) == {5}


def test_uploads_at_the_same_time_leave_one_of_them_whole(base: Open, store: Store) -> None:
    uploads = [threading.Thread(target=lambda n=number: base().upload(version(n), "a.txt")) for number in range(6)]
    for one in uploads:
        one.start()
    for one in uploads:
        one.join()
    assert len(seen(base())) == 1
    assert len(base().list()) == 1
    assert store.check() == []
