"""Large documents, many writers at once, and processes that die."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from homing.database import Transaction
from homing.documents import DocumentService
from homing.testing.fake import FakeEmbedder
from tests.documents.novel import Library, paragraphs
from tests.effort import times
from tests.forked import start_python

pytestmark = pytest.mark.slow


def test_a_document_of_megabytes_and_many_thousand_paragraphs(tmp_path: Path) -> None:
    count = times(20_000, in_full=100_000)
    text = "\n\n".join(f"{one}第{number}节。" for number, one in enumerate(paragraphs(count, seed=1)))
    assert len(text.encode()) > 100 * count
    with closing(Library(tmp_path, None)) as library:
        documents = library.documents
        assert len(documents.save("p", "d", text).changed) == count
        edited = text.replace("第15000节", "第一万五千节")
        saved = documents.save("p", "d", edited)
        assert (len(saved.changed), len(saved.unchanged)) == (1, count - 1)
        assert documents.text("p", "d") == edited
        [hit] = documents.search("p", "「第一万五千节」", mode="keyword")
        assert edited[hit.metadata["start_offset"] : hit.metadata["end_offset"]] == hit.text


def test_texts_without_a_paragraph_or_an_end_are_kept(documents: DocumentService) -> None:
    for text in (
        "。" * 5000,
        "a" * 300_000,
        "\n" * 50_000,
        "- x\n" * 5_000,
        "| a |\n" * 3_000,
        "```\n" + "x\n" * 5_000,
    ):
        documents.save("p", "d", text)
        assert documents.text("p", "d") == text
        assert all(text[one.start_offset : one.end_offset] == one.text for one in documents.chunks("p", "d"))


def test_many_threads_save_and_search_at_once(documents: DocumentService) -> None:
    problems: list[BaseException] = []

    def write(number: int) -> None:
        try:
            chance = random.Random(number)
            parts = paragraphs(30, seed=number)
            for _ in range(15):
                parts[chance.randrange(30)] = f"写手{number}改成了{chance.randrange(1000)}号灯塔。"
                documents.save("p", f"d{number}", "\n\n".join(parts))
                for hit in documents.search("p", "灯塔", mode="hybrid"):
                    assert hit.metadata["project_id"] == "p"
        except BaseException as problem:
            problems.append(problem)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert problems == []
    assert documents.flush(120)
    report = documents.reindex()
    assert (report.documents, report.embedded, report.removed, report.repaired) == (4, 0, 0, 0)


EDITOR = """
import random, sys, time
from pathlib import Path
from homing.testing.fake import FakeEmbedder
from tests.documents.novel import Library, paragraphs
library = Library(Path(sys.argv[1]), FakeEmbedder(16))
chance = random.Random(int(sys.argv[2]))
parts = paragraphs(60, seed=int(sys.argv[2]))
while True:
    if chance.random() < 0.3:
        parts.insert(chance.randrange(len(parts)), f"新的一段，编号{chance.random()}。")
    elif chance.random() < 0.5 and len(parts) > 20:
        del parts[chance.randrange(len(parts))]
    else:
        parts[chance.randrange(len(parts))] += "又写了一句。"
    library.documents.save("p", "d", "\\n\\n".join(parts))
    if chance.random() < 0.2:
        print("\\n\\n".join(parts).count("段"), flush=True)
"""


def test_an_editor_that_is_killed_leaves_everything_in_order(tmp_path: Path) -> None:
    for round_ in range(5):
        with start_python(["-c", EDITOR, str(tmp_path), str(round_)], stdout=subprocess.PIPE) as editor:
            assert editor.stdout is not None
            editor.stdout.readline()
            time.sleep(random.Random(round_).uniform(0.05, 0.4))
            os.kill(editor.pid, signal.SIGKILL)
        with closing(Library(tmp_path, FakeEmbedder(16))) as library:
            documents = library.documents
            text = documents.text("p", "d")
            chunks = documents.chunks("p", "d")
            assert all(text[one.start_offset : one.end_offset] == one.text for one in chunks)
            assert documents.flush(120)
            kept = {record.id: record for record in library.store.records("paragraphs")}
            assert {one.id for one in chunks} == set(kept)
            assert all(kept[one.id].text == one.text and kept[one.id].embedding is not None for one in chunks)
            assert library.store.check() == []


def test_reading_does_not_wait_for_a_save(library: Library) -> None:
    documents = library.documents
    documents.save("small", "d", "灯塔亮了。")
    assert documents.flush(120)

    def look(transaction: Transaction) -> list[str]:
        # Inside of somebody else's write, which has not ended.
        documents.documents("small")
        return [hit.text for hit in documents.search("small", "灯塔", mode="hybrid")]

    assert library.engine.database.write(look) == ["灯塔亮了。"]
