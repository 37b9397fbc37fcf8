"""A save is durable when it returns, and never waits for the model."""

from __future__ import annotations

import subprocess
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from homing.database.sqlite import database as connections
from homing.documents import DocumentService
from homing.errors import InvalidArgument, NotFound, StoreBusy, StoreError
from homing.testing.fake import FakeEmbedder
from tests.documents.gated import Gated
from tests.documents.novel import Library, novel, paragraphs
from tests.forked import run_python, start_python


def test_a_save_does_not_wait_for_the_model(tmp_path: Path) -> None:
    embedder = Gated()
    library = Library(tmp_path, embedder)
    saved = library.documents.save("p", "d", "雨夜里，他听见钟声。")
    assert embedder.asked.wait(120)
    # The model has not answered, and the text is on disk and found by its words.
    assert len(saved.changed) == 1
    [hit] = library.documents.search("p", "钟声", mode="keyword")
    assert hit.metadata["pending"] is True
    embedder.answer.set()
    assert library.documents.flush(120)
    [hit] = library.documents.search("p", "钟声", mode="keyword")
    assert hit.metadata["pending"] is False
    library.close()


def test_two_saves_in_a_row_are_both_reported(documents: DocumentService) -> None:
    text = novel(300)
    first = documents.save("p", "d", text)
    second = documents.save("p", "d", text.replace("第20个夜晚", "第二十个夜晚"))
    assert (len(first.changed), len(second.changed), len(second.unchanged)) == (300, 1, 299)


@pytest.mark.slow
def test_of_many_saves_the_latest_wins(documents: DocumentService, embedder: FakeEmbedder) -> None:
    for number in range(400):
        documents.save("p", "d", f"第一段不变，一直都不变。\n\n第二段写到了{number}个字。")
    assert documents.text("p", "d").endswith("写到了399个字。")
    assert documents.flush(120)
    assert [one.text for one in documents.chunks("p", "d")][1] == "第二段写到了399个字。"
    [hit] = documents.search("p", "399个字", mode="keyword", top_k=1)
    assert hit.text == "第二段写到了399个字。"
    assert embedder.texts.count("第一段不变，一直都不变。") == 1


def test_typing_in_a_paragraph_does_not_embed_every_letter(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    library = Library(tmp_path, embedder, settle=30.0)
    for length in range(1, 30):
        library.documents.save("p", "d", "这是一个人慢慢打出来的一段话，一个字一个字地写下去直到写完为止。"[:length])
    assert library.documents.flush(120)
    assert len(embedder.texts) == 1
    library.close()


@pytest.mark.slow
def test_what_was_saved_is_there_in_every_process(tmp_path: Path) -> None:
    long = novel(3000)
    library = Library(tmp_path, FakeEmbedder())
    library.documents.save("p", "d", long)
    reader = """
import sys
from pathlib import Path
from tests.documents.novel import Library
library = Library(Path(sys.argv[1]), None)
print(len(library.documents.text("p", "d")), len(library.documents.search("p", "夜晚", mode="keyword", top_k=7)))
"""
    seen = run_python(["-c", reader, str(tmp_path)])
    assert seen.stdout.split() == [str(len(long)), "7"], seen.stderr
    library.close()


def test_an_empty_document_is_a_document(documents: DocumentService) -> None:
    documents.save("p", "d", "")
    assert documents.text("p", "d") == ""
    assert documents.chunks("p", "d") == []
    assert [one.id for one in documents.documents("p")] == ["d"]


def test_any_string_can_be_saved(documents: DocumentService) -> None:
    for text in ("\ud83d", "a\0b", "\ufeff标题\n\n正文", "\r\r\r", "﷽" * 2000, "\u2028\u2029"):
        documents.save("p", "d", text)
        assert documents.text("p", "d") == text
    assert documents.flush(120)


def test_names_that_no_store_can_hold_are_refused(documents: DocumentService) -> None:
    for project, document in (("", "d"), ("p", ""), ("p\0", "d"), ("p", "\ud800")):
        with pytest.raises(InvalidArgument):
            documents.save(project, document, "text")
    with pytest.raises(InvalidArgument, match="text of a document"):
        documents.save("p", "d", b"bytes")  # type: ignore[arg-type]


def test_what_is_not_there_is_not_found(documents: DocumentService) -> None:
    with pytest.raises(NotFound, match="no document 'd'"):
        documents.text("p", "d")
    with pytest.raises(NotFound):
        documents.chunks("p", "d")
    assert documents.documents("p") == []
    assert documents.projects() == []


def test_lists_say_what_there_is(documents: DocumentService) -> None:
    documents.save("a", "one", "第一段。\n\n第二段。")
    documents.save("a", "two", "第三段。")
    documents.save("b", "one", "别的项目。")
    assert documents.flush(120)
    assert [(one.id, one.documents, one.chunks, one.pending) for one in documents.projects()] == [
        ("a", 2, 3, 0),
        ("b", 1, 1, 0),
    ]
    assert [(one.id, one.characters, one.chunks, one.pending) for one in documents.documents("a")] == [
        ("one", 10, 2, 0),
        ("two", 4, 1, 0),
    ]


def test_a_closed_service_refuses_texts(tmp_path: Path) -> None:
    library = Library(tmp_path, FakeEmbedder())
    library.documents.save("p", "d", "写完就关。")
    library.close()
    with pytest.raises(StoreError):
        library.documents.save("p", "d", "太晚了。")
    again = Library(tmp_path, FakeEmbedder())
    assert again.documents.text("p", "d") == "写完就关。"
    again.close()


def test_two_services_on_one_file_write_one_document(tmp_path: Path) -> None:
    one, two = Library(tmp_path, FakeEmbedder()), Library(tmp_path, FakeEmbedder())
    parts = paragraphs(60)
    for number in range(0, 60, 2):
        one.documents.save("p", "d", "\n\n".join(parts[: number + 1]))
        two.documents.save("p", "d", "\n\n".join(parts[: number + 2]))
    assert one.documents.flush(120)
    chunks = one.documents.chunks("p", "d")
    assert [chunk.text for chunk in chunks] == parts
    assert {record.id for record in one.store.records("paragraphs")} == {chunk.id for chunk in chunks}
    assert one.documents.reindex().embedded == 0
    one.close()
    two.close()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process holds the write lock."""
    code = """
        import sys, apsw
        db = apsw.Connection(sys.argv[1])
        db.execute("BEGIN IMMEDIATE")
        print("locked", flush=True)
        sys.stdin.readline()
    """
    holder = start_python(["-c", textwrap.dedent(code), str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"locked\n"
    try:
        yield
    finally:
        holder.communicate(b"\n")


def test_a_locked_database_is_told_and_nothing_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BUSY_MS", 200)
    library = Library(tmp_path, FakeEmbedder())
    library.documents.save("p", "d", "第一版。")
    assert library.documents.flush(120)
    with locked(library.path):
        with pytest.raises(StoreBusy, match="another process"):
            library.documents.save("p", "d", "第二版。")
        # Reading goes on meanwhile.
        assert library.documents.text("p", "d") == "第一版。"
        assert library.documents.search("p", "第一版", mode="keyword").hits[0].text == "第一版。"
    assert library.documents.save("p", "d", "第二版。").changed
    assert library.documents.flush(120)
    assert [one.text for one in library.documents.chunks("p", "d")] == ["第二版。"]
    assert library.store.check() == []
    library.close()
