"""Folders of files become documents; one bad file never stops the others."""

from __future__ import annotations

import time
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from homing.documents import DocumentService
from homing.engine.worker import WorkerOptions
from homing.errors import InvalidArgument, NotFound
from homing.testing.fake import FakeEmbedder
from tests.documents.gated import Gated
from tests.documents.novel import Library


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "books"
    (folder / "卷一").mkdir(parents=True)
    (folder / "卷一" / "第一章.md").write_text("# 归途\n\n灯塔亮了。\n\n船靠岸了。", encoding="utf-8")
    (folder / "gb.txt").write_bytes("这一篇是用国标码写的，提到了石榴。".encode("gb18030"))
    (folder / "utf16.txt").write_text("这一篇带着字节序标记。", encoding="utf-16")
    (folder / "damaged.txt").write_bytes("好好的一段话，写到一半坏掉了。".encode() * 30 + b"\xff\xfe\xfd" + b" tail")
    (folder / "binary.txt").write_bytes(bytes(range(256)) * 20)
    (folder / "empty.txt").write_bytes(b"")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / ".hidden.md").write_text("不该被看到", encoding="utf-8")
    (folder / "broken.docx").write_bytes(b"PK\x03\x04 not a document")
    return folder


def test_files_become_documents_named_by_their_path(documents: DocumentService, folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = documents.import_folder("p", folder, lambda *at: seen.append(at))
    assert set(report.documents) == {"卷一/第一章.md", "gb.txt", "utf16.txt", "damaged.txt"}
    assert {one.path for one in report.skipped} == {"binary.txt", "empty.txt", "broken.docx"}
    assert all(one.reason and one.code for one in report.skipped)
    assert documents.text("p", "卷一/第一章.md") == "# 归途\n\n灯塔亮了。\n\n船靠岸了。"
    assert documents.text("p", "gb.txt") == "这一篇是用国标码写的，提到了石榴。"
    assert documents.text("p", "utf16.txt") == "这一篇带着字节序标记。"
    assert seen[0] == (0, 7)
    assert seen[-1] == (7, 7)
    [hit] = documents.search("p", "石榴", mode="keyword")
    assert hit.metadata["document_id"] == "gb.txt"


def test_invalid_utf8_is_read_as_far_as_it_goes_and_told(documents: DocumentService, folder: Path) -> None:
    report = documents.import_folder("p", folder)
    assert any(note.startswith("damaged.txt: ") for note in report.notes)
    assert "好好的一段话" in documents.text("p", "damaged.txt")
    assert "\ufffd" in documents.text("p", "damaged.txt")


def test_importing_again_embeds_only_what_changed(
    documents: DocumentService, folder: Path, embedder: FakeEmbedder
) -> None:
    documents.import_folder("p", folder)
    assert documents.flush(120)
    embedder.texts.clear()
    (folder / "卷一" / "第一章.md").write_text("# 归途\n\n灯塔亮了。\n\n船开走了。", encoding="utf-8")
    report = documents.import_folder("p", folder)
    assert report.documents == ("卷一/第一章.md",)
    assert set(report.unchanged) == {"gb.txt", "utf16.txt", "damaged.txt"}
    assert documents.flush(120)
    assert embedder.texts == ["船开走了。"]


def test_word_documents_and_books_are_read(documents: DocumentService, tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    folder = tmp_path / "files"
    folder.mkdir()
    letter = docx.Document()
    letter.add_heading("来信", 1)
    letter.add_paragraph("亲爱的林婉，码头的灯塔修好了。")
    letter.save(str(folder / "信.docx"))
    epub(folder / "书.epub", "第一章", "从前有一座灯塔，守夜人每天点灯。")
    report = documents.import_folder("p", folder)
    assert set(report.documents) == {"信.docx", "书.epub"}, report.skipped
    hits = documents.search("p", "灯塔", mode="keyword")
    assert {hit.metadata["document_id"] for hit in hits} == {"信.docx", "书.epub"}


def epub(path: Path, title: str, text: str) -> None:
    """The smallest book that a reader takes for one."""
    page = f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{title}</title></head><body><h1>{title}</h1><p>{text}</p></body></html>'
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i"><metadata '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="i">x</dc:identifier><dc:title>书</dc:title>'
        '<dc:language>zh</dc:language></metadata><manifest><item id="c" href="c.xhtml" '
        'media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine></package>'
    )
    container = (
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="p.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr("META-INF/container.xml", container)
        book.writestr("p.opf", package)
        book.writestr("c.xhtml", page)


def test_links_do_not_lead_out_of_the_folder(documents: DocumentService, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("外面的秘密。", encoding="utf-8")
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    assert documents.import_folder("p", folder).documents == ()


def test_a_folder_must_be_one(documents: DocumentService, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no folder"):
        documents.import_folder("p", tmp_path / "nowhere")
    (tmp_path / "file.md").write_text("x", encoding="utf-8")
    with pytest.raises(InvalidArgument, match="not a folder"):
        documents.import_folder("p", tmp_path / "file.md")


def test_what_is_typed_during_an_import_is_embedded_before_the_rest_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "books"
    folder.mkdir()
    for number in range(4):
        text = "\n\n".join(f"第{number}本书的第{at}段说的是往事。" for at in range(100))
        (folder / f"{number}.md").write_text(text, encoding="utf-8")
    embedder = Gated()
    with closing(Library(tmp_path, embedder, settle=0.0)) as library:
        library.documents.import_folder("library", folder)
        assert embedder.asked.wait(120)
        library.documents.save("novel", "ch1", "灯塔亮了，有人正在打字。")
        embedder.answer.set()
        # Whoever flushes embeds as well, and might take the next batch beside the worker.
        while "灯塔亮了，有人正在打字。" not in embedder.texts:
            time.sleep(0.01)
        assert library.documents.flush(120)
    # A batch of the import was under way; what was typed is in the next one.
    assert embedder.texts.index("灯塔亮了，有人正在打字。") < 2 * WorkerOptions().batch_size
    assert len(embedder.texts) == 401
