"""Files made to cost the machine, or to read what they should not."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.errors import FileTooLarge, FileUnsafe
from homing.files import Limits, read_file
from tests.files.made_files import (
    CONTAINER,
    make_docx,
    make_epub,
    make_pdf,
    make_xlsx,
    make_zip,
    member,
    with_member,
)

BILLION_LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "哈哈哈哈哈哈哈哈"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    "<x>&b;&b;&b;&b;</x>"
)


def test_a_file_larger_than_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.txt"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(FileTooLarge, match="at most 64 MiB") as raised:
        read_file(path)
    assert raised.value.details["limit"] == 64 * 1024 * 1024


@pytest.mark.parametrize("name", ["a.docx", "a.xlsx", "a.epub"])
def test_an_archive_that_unpacks_to_too_much_is_refused_unopened(name: str) -> None:
    bomb = make_zip({f"part{n}.bin": b"\0" * (1 << 20) for n in range(9)})
    assert len(bomb) < 1 << 20
    with pytest.raises(FileTooLarge, match="when unpacked"):
        read_file(bomb, name, limits=Limits(unpacked=8 << 20))


def test_one_huge_member_is_refused() -> None:
    bomb = with_member(make_docx("x"), "word/document.xml", b"<a>" + b" " * (2 << 20))
    with pytest.raises(FileTooLarge, match=r"word/document\.xml of 2 MiB"):
        read_file(bomb, "a.docx", limits=Limits(member=1 << 20))


def test_an_archive_of_countless_members_is_refused() -> None:
    with pytest.raises(FileTooLarge, match="members"):
        read_file(make_zip({f"{n}": b"" for n in range(200)}), "a.epub", limits=Limits(members=100))


def test_a_pdf_of_countless_pages_is_refused() -> None:
    with pytest.raises(FileTooLarge, match="pages"):
        read_file(make_pdf(*[["x"]] * 5), "a.pdf", limits=Limits(pages=4))


def test_too_much_text_is_refused() -> None:
    with pytest.raises(FileTooLarge, match="characters"):
        read_file(b"word " * 1000, "a.txt", limits=Limits(characters=1000))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("name", ["docx", "xlsx", "epub", "opf"])
def test_xml_entities_are_refused_in_every_format(name: str, encoding: str) -> None:
    laughs = BILLION_LAUGHS.encode(encoding)
    made = {
        "docx": lambda: with_member(make_docx("x"), "word/document.xml", laughs),
        "xlsx": lambda: with_member(make_xlsx({"S": [["x"]]}), "xl/worksheets/sheet1.xml", laughs),
        "epub": lambda: make_epub({"a.xhtml": laughs}),
        "opf": lambda: make_zip({"META-INF/container.xml": CONTAINER, "OEBPS/book.opf": laughs}),
    }[name]()
    with pytest.raises(FileUnsafe, match="entities") as raised:
        read_file(made, f"a.{'epub' if name == 'opf' else name}")
    assert raised.value.code == "FILE_UNSAFE"


def test_entities_hide_behind_no_name() -> None:
    made = make_xlsx({"S": [["x"]]})
    relations = member(made, "xl/_rels/workbook.xml.rels").decode().replace("sheet1.xml", "sheet1.bin")
    types = member(made, "[Content_Types].xml").decode().replace("sheet1.xml", "sheet1.bin")
    moved = with_member(made, "xl/_rels/workbook.xml.rels", relations)
    hidden = with_member(with_member(moved, "[Content_Types].xml", types), "xl/worksheets/sheet1.bin", BILLION_LAUGHS)
    with pytest.raises(FileUnsafe, match=r"sheet1\.bin"):
        read_file(hidden, "a.xlsx")


def test_a_document_cannot_read_files_of_this_machine() -> None:
    spy = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><x>&f;</x>'
    with pytest.raises(FileUnsafe):
        read_file(make_epub({"a.xhtml": spy}), "a.epub")
