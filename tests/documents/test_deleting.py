"""What is deleted leaves nothing behind, in any table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from homing.database.sqlite import SqliteDatabase
from homing.documents import DocumentService
from homing.testing.fake import FakeEmbedder
from tests.documents.gated import Gated
from tests.documents.novel import Library, novel

SECRET = "绝密的段落提到了月光宝盒。"


def everything(path: Path) -> dict[str, list[Any]]:
    """The rows of every table of a file, those that engines keep for themselves included."""
    database = SqliteDatabase(path)
    with database.reading() as connection:
        names = [
            str(name)
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            ).fetchall()
        ]
        rows = {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}
    database.close()
    return rows


def mentions(path: Path, *secrets: str) -> list[str]:
    """The tables in which one of the words stands, as text or inside bytes."""
    found = []
    for name, rows in everything(path).items():
        for value in (value for row in rows for value in row):
            held = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
            if any(secret.encode() in held for secret in secrets):
                found.append(name)
    return found


def test_a_deleted_document_is_gone_everywhere(library: Library) -> None:
    documents = library.documents
    documents.save("p", "kept", novel(20))
    documents.save("p", "秘密文件", f"{novel(30, seed=3)}\n\n{SECRET}")
    assert documents.flush(120)
    assert mentions(library.path, "月光", "宝盒")
    before = {record.id for record in library.store.records("paragraphs")}
    gone = {chunk.id for chunk in documents.chunks("p", "秘密文件")}
    assert documents.delete("p", "秘密文件") is True
    assert len(documents.search("p", "月光宝盒", mode="keyword")) == 0
    assert documents.flush(120)
    assert mentions(library.path, "月光", "宝盒", "秘密文件") == []
    assert {record.id for record in library.store.records("paragraphs")} == before - gone
    assert library.store.check() == []
    rows = everything(library.path)
    assert rows["work"] == []
    assert len(rows["document_chunks"]) == len(rows["embeddings"]) == 20
    assert documents.delete("p", "秘密文件") is False


def test_a_deleted_project_is_gone_everywhere(library: Library) -> None:
    documents = library.documents
    documents.save("绝密项目", "a", f"{novel(30)}\n\n{SECRET}")
    documents.save("绝密项目", "b", SECRET)
    documents.save("other", "c", novel(10, seed=5))
    assert documents.flush(120)
    assert documents.delete_project("绝密项目") == 2
    assert documents.flush(120)
    assert [one.id for one in documents.projects()] == ["other"]
    assert {one.metadata["project"] for one in library.store.records("paragraphs")} == {"other"}
    assert mentions(library.path, "月光", "宝盒", "绝密") == []
    assert library.store.check() == []
    rows = everything(library.path)
    assert rows["work"] == []
    assert len(rows["document_chunks"]) == len(rows["embeddings"]) == 10


def test_a_removed_paragraph_is_gone_everywhere(library: Library) -> None:
    documents = library.documents
    documents.save("p", "d", f"{novel(30)}\n\n{SECRET}")
    assert documents.flush(120)
    documents.save("p", "d", novel(30))
    assert documents.flush(120)
    assert mentions(library.path, "月光", "宝盒") == []


def test_of_what_was_deleted_no_byte_stays_in_the_file(tmp_path: Path) -> None:
    library = Library(tmp_path, FakeEmbedder(64))
    library.documents.save("p", "kept", novel(20))
    library.documents.save("p", "秘密文件", f"{novel(300, seed=3)}\n\n{SECRET}")
    library.documents.save("p", "short", SECRET)
    assert library.documents.flush(120)
    library.documents.delete("p", "秘密文件")
    library.documents.save("p", "short", "没什么。")
    assert library.documents.flush(120)
    library.close()
    for file in tmp_path.iterdir():
        held = file.read_bytes()
        assert [word for word in (SECRET, "月光", "秘密文件") if word.encode() in held] == []


def test_what_is_deleted_while_it_is_being_embedded_does_not_come_back(tmp_path: Path) -> None:
    embedder = Gated()
    library = Library(tmp_path, embedder)
    library.documents.save("绝密项目", "d", SECRET)
    assert embedder.asked.wait(120)
    assert library.documents.delete_project("绝密项目") == 1
    embedder.answer.set()
    assert library.documents.flush(120)
    assert library.store.collections() == []
    assert mentions(library.path, "月光", "宝盒", "绝密") == []
    library.close()


def test_a_project_can_be_made_again_after_it_was_deleted(documents: DocumentService) -> None:
    for round_ in range(3):
        documents.save("p", "d", f"第{round_}次写下灯塔。")
        assert documents.flush(120)
        assert [hit.text for hit in documents.search("p", "灯塔", mode="keyword")] == [f"第{round_}次写下灯塔。"]
        assert documents.delete_project("p") == 1
    documents.save("p", "d", "最后写下灯塔。")
    assert documents.flush(120)
    assert len(documents.search("p", "灯塔", mode="keyword")) == 1


def test_a_long_text_that_waits_for_its_vectors_can_be_deleted(documents: DocumentService) -> None:
    documents.save("p", "d", novel(3000))
    assert documents.delete("p", "d") is True
    assert documents.documents("p") == []
    assert documents.flush(120)
    assert documents.documents("p") == []
