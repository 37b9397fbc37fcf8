"""Files made for the tests, byte by byte or by the libraries that people's programs stand for."""

from __future__ import annotations

import importlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import docx
import pypdf
from pypdf.generic import ArrayObject, DecodedStreamObject, DictionaryObject, NameObject, NumberObject, StreamObject

CONTAINER = (
    '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
    '<rootfiles><rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/>'
    "</rootfiles></container>"
)


def make_zip(members: Mapping[str, str | bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return held.getvalue()


def make_pdf(*pages: Sequence[str], password: str = "", owner_password: str | None = None) -> bytes:
    """A PDF with the given lines on each page, Chinese too: the characters' codes are their Unicode numbers."""
    writer = pypdf.PdfWriter()
    font = _font(writer, {char for lines in pages for line in lines for char in line})
    for lines in pages:
        page = writer.add_blank_page(width=595, height=842)
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        drawn = "BT /F1 12 Tf 50 800 Td 16 TL " + " ".join(
            f"<{line.encode('utf-16-be').hex()}> Tj T*" for line in lines
        )
        stream = DecodedStreamObject()
        stream.set_data((drawn + " ET").encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    if password or owner_password is not None:
        writer.encrypt(password, owner_password, algorithm="AES-256")
    return _written(writer)


def _font(writer: pypdf.PdfWriter, characters: set[str]) -> Any:
    codes = [char.encode("utf-16-be").hex() for char in sorted(characters)]
    table = StreamObject()
    told = "\n".join(f"<{code}> <{code}>" for code in codes)
    table.set_data(
        f"begincmap\n1 begincodespacerange <0000> <ffff> endcodespacerange\n"
        f"{len(codes)} beginbfchar\n{told}\nendbfchar\nendcmap".encode()
    )
    descendant = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/CIDFontType2"),
            NameObject("/BaseFont"): NameObject("/Any"),
            NameObject("/DW"): NumberObject(600),
        }
    )
    return writer._add_object(
        DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type0"),
                NameObject("/BaseFont"): NameObject("/Any"),
                NameObject("/Encoding"): NameObject("/Identity-H"),
                NameObject("/DescendantFonts"): ArrayObject([writer._add_object(descendant)]),
                NameObject("/ToUnicode"): writer._add_object(table),
            }
        )
    )


def _written(writer: pypdf.PdfWriter) -> bytes:
    held = io.BytesIO()
    writer.write(held)
    return held.getvalue()


def make_docx(*blocks: str | tuple[str, int] | list[list[str]]) -> bytes:
    """A Word document: a text is a paragraph, a text with a number a heading, a list of lists a table."""
    document = docx.Document()
    for block in blocks:
        if isinstance(block, str):
            document.add_paragraph(block)
        elif isinstance(block, tuple):
            document.add_heading(block[0], block[1])
        else:
            table = document.add_table(rows=len(block), cols=len(block[0]))
            for row, texts in zip(table.rows, block, strict=True):
                for cell, text in zip(row.cells, texts, strict=True):
                    cell.text = text
    held = io.BytesIO()
    document.save(held)
    return held.getvalue()


def make_xlsx(sheets: Mapping[str, Sequence[Sequence[Any]]]) -> bytes:
    workbook = importlib.import_module("openpyxl").Workbook()
    workbook.remove(workbook.worksheets[0])
    for title, rows in sheets.items():
        sheet = workbook.create_sheet(title)
        for row in rows:
            sheet.append(list(row))
    held = io.BytesIO()
    workbook.save(held)
    return held.getvalue()


def make_epub(chapters: Mapping[str, str | bytes], *, spine: Sequence[str] | None = None, **others: str) -> bytes:
    """An e-book of pages by their file names, read in the order of `spine`."""
    items = "".join(
        f'<item id="i{at}" href="{name}" media-type="application/xhtml+xml"/>' for at, name in enumerate(chapters)
    )
    order = {name: at for at, name in enumerate(chapters)}
    references = "".join(f'<itemref idref="i{order[name]}"/>' for name in (spine or list(chapters)))
    package = (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        f"<manifest>{items}</manifest><spine>{references}</spine></package>"
    )
    pages = {f"OEBPS/{name}": page for name, page in chapters.items()}
    return make_zip(
        {"mimetype": "application/epub+zip", "META-INF/container.xml": CONTAINER, "OEBPS/book.opf": package}
        | pages
        | others
    )


def page(body: str, head: str = "<title/>") -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html>'
        f'<html xmlns="http://www.w3.org/1999/xhtml"><head>{head}</head><body>{body}</body></html>'
    )


def member(archive: bytes, name: str) -> bytes:
    """What an archive holds under a name."""
    return zipfile.ZipFile(io.BytesIO(archive)).read(name)


def with_member(archive: bytes, name: str, content: str | bytes) -> bytes:
    """The archive with something else under a name."""
    held = zipfile.ZipFile(io.BytesIO(archive))
    return make_zip({one: held.read(one) for one in held.namelist()} | {name: content})
