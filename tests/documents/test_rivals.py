"""Several write the same documents at once: afterwards text, words and vectors are those of the last one, and no other.

On the first edition words were written after the text was, without a look at who had written in between: deleted words
stayed behind, and living paragraphs were found by words that they no longer had.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from homing.config import Settings
from homing.doctor import diagnose
from homing.documents import DocumentService
from homing.engine import Engine
from homing.testing.fake import FakeEmbedder
from tests.documents import rival
from tests.documents.novel import Library
from tests.effort import times
from tests.forked import start_python

pytestmark = pytest.mark.slow

ROUNDS = times(15, in_full=60)


def check_in_order(documents: DocumentService, engine: Engine, names: Iterable[str]) -> None:
    """For every id, text = words = vectors, and every word finds the paragraphs that have it now."""
    assert documents.flush(120)
    chunks = [one for info in documents.documents("p") for one in documents.chunks("p", info.id)]
    store = engine.store
    assert store.check() == []
    assert documents.check() == []
    assert store.ids("paragraphs") == sorted(one.id for one in chunks)
    assert store.pending("paragraphs") == engine.work.waiting() == 0
    assert {one.id: one.text for one in store.records("paragraphs")} == {one.id: one.text for one in chunks}
    holders: dict[str, list[str]] = {}
    for chunk in chunks:
        holders.setdefault(chunk.text.split()[0], []).append(chunk.id)
    assert holders
    for name in names:
        for word in rival.words(name, ROUNDS):
            hits = documents.search("p", word, mode="keyword", top_k=100)
            assert sorted(hit.id for hit in hits) == sorted(holders.get(word, [])), word


def write_all(services: Sequence[DocumentService], names: Sequence[str]) -> None:
    writers = [
        threading.Thread(target=rival.write, args=(service, name, ROUNDS))
        for service, name in zip(services, names, strict=True)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


def check_folder(folder: Path, names: Iterable[str]) -> None:
    with closing(Library(folder, FakeEmbedder(32))) as library:
        check_in_order(library.documents, library.engine, names)
    findings = diagnose(Settings(data=folder, embedding={"provider": ""}))
    assert [one for one in findings if one.status == "fail"] == []


def test_threads(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    with closing(Library(tmp_path, FakeEmbedder(32))) as one, closing(Library(tmp_path, FakeEmbedder(32))) as two:
        write_all([one.documents, one.documents, two.documents], names)
    check_folder(tmp_path, names)


def test_processes(tmp_path: Path) -> None:
    names = ("a", "b")
    writers = [
        start_python(
            ["-m", "tests.documents.rival", str(tmp_path), name, str(ROUNDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for name in names
    ]
    for process in writers:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in writers:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in writers:
        process.communicate()
        assert process.returncode == 0
    check_folder(tmp_path, names)
