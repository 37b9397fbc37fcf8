"""Files that are small and cost much to read, one for each way that is known."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

from tests.files.made_files import make_docx, make_epub, make_xlsx, make_zip, member, page, with_member

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def _pdf(*objects: bytes) -> bytes:
    """A PDF of these objects, numbered from 1; the first is the catalog."""
    body, places = b"%PDF-1.7\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    table += b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer\n<</Root 1 0 R /Size %d>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(body))
    return body + table + trailer


def _stream(content: bytes, entries: bytes = b"") -> bytes:
    packed = zlib.compress(content, 9)
    return b"<</Filter /FlateDecode /Length %d %s>>\nstream\n%s\nendstream" % (len(packed), entries, packed)


def same_page_thousands_of_times(references: int = 4_900) -> bytes:
    """A tree of pages that names one page again and again, with a page that takes a while."""
    drawn = b"BT /F1 12 Tf " + b"(lamp) Tj " * 20_000 + b"ET"
    return _pdf(
        b"<</Type /Catalog /Pages 2 0 R>>",
        b"<</Type /Pages /Count %d /Kids [%s]>>" % (references, b"3 0 R " * references),
        b"<</Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources <</Font <</F1 5 0 R>>>>>>",
        _stream(drawn),
        b"<</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>",
    )


def a_page_that_unpacks_to_a_gigabyte() -> bytes:
    """What is drawn on a page, packed twice: a few kilobytes are a megabyte are a gigabyte."""
    inner = zlib.compress(b" " * (1 << 27), 9)
    packed = zlib.compress(inner, 9)
    return _pdf(
        b"<</Type /Catalog /Pages 2 0 R>>",
        b"<</Type /Pages /Count 1 /Kids [3 0 R]>>",
        b"<</Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R>>",
        b"<</Filter [/FlateDecode /FlateDecode] /Length %d>>\nstream\n%s\nendstream" % (len(packed), packed),
    )


def forms_within_forms(depth: int = 16) -> bytes:
    """Drawings that each draw the next one twice: two to the power of the depth."""
    forms = [
        _stream(
            b"/X Do /X Do", b"/Type /XObject /Subtype /Form /BBox [0 0 1 1] /Resources <</XObject <</X %d 0 R>>>>" % at
        )
        for at in range(5, 5 + depth)
    ]
    return _pdf(
        b"<</Type /Catalog /Pages 2 0 R>>",
        b"<</Type /Pages /Count 1 /Kids [3 0 R]>>",
        b"<</Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents %d 0 R /Resources <</XObject <</X 4 0 R>>>>>>"
        % (4 + depth + 1),
        *forms,
        _stream(b"", b"/Type /XObject /Subtype /Form /BBox [0 0 1 1]"),
        _stream(b"/X Do"),
    )


def a_picture_of_a_gigapixel() -> bytes:
    """A page that only shows a picture, of a size that no memory holds."""
    picture = b"/Type /XObject /Subtype /Image /Width 32768 /Height 32768 /ColorSpace /DeviceRGB /BitsPerComponent 8"
    return _pdf(
        b"<</Type /Catalog /Pages 2 0 R>>",
        b"<</Type /Pages /Count 1 /Kids [3 0 R]>>",
        b"<</Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 5 0 R /Resources <</XObject <</X 4 0 R>>>>>>",
        _stream(b"\0" * (1 << 24), picture),
        _stream(b"/X Do"),
    )


def _document(body: str) -> bytes:
    return with_member(
        make_docx("x"), "word/document.xml", f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>'
    )


def many_paragraphs(count: int = 700_000) -> bytes:
    """A document of empty paragraphs: each is an object of the library."""
    return _document("<w:p><w:r><w:t>x</w:t></w:r></w:p>" * count)


def tables_within_tables(depth: int = 240) -> bytes:
    """Cells that hold a table, whose cells hold one: every level is read with all below it."""
    begin = "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>x</w:t></w:r></w:p>"
    return _document(begin * depth + "</w:tc></w:tr></w:tbl>" * depth)


def elements_without_end(depth: int = 200_000) -> bytes:
    """XML that goes deeper than anybody follows."""
    return _document("<w:p>" * depth + "</w:p>" * depth)


def a_wide_sheet(columns: int = 16_000, rows: int = 400) -> bytes:
    """A sheet whose rows name their last column only: all before it are cells too."""
    letters = _column(columns)
    cells = "".join(f'<row r="{n}"><c r="{letters}{n}"><v>1</v></c></row>' for n in range(1, rows + 1))
    return _sheet(cells)


def one_sheet_under_many_names(sheets: int = 2_000, rows: int = 2_000) -> bytes:
    """A workbook of thousands of sheets that are all the same one: it is read for each name."""
    cells = "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in range(1, rows + 1))
    made = _sheet(cells)
    book = member(made, "xl/workbook.xml").decode()
    name = next(part for part in book.split("<") if part.startswith("sheet "))
    names = "".join("<" + name.replace('name="S"', f'name="S{n}"') for n in range(sheets))
    return with_member(made, "xl/workbook.xml", book.replace("<" + name, names))


def many_strings(count: int = 900_000) -> bytes:
    """A workbook that declares a million texts and uses none of them."""
    made = make_xlsx({"S": [["x", "y"]]})
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    entry = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'
    types = member(made, "[Content_Types].xml").decode().replace("</Types>", entry)
    strings = "<si><t>x</t></si>" * count
    table = f'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">{strings}</sst>'
    return with_member(with_member(made, "[Content_Types].xml", types), "xl/sharedStrings.xml", table)


def _sheet(rows: str) -> bytes:
    made = make_xlsx({"S": [["x"]]})
    kind = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = f'<worksheet xmlns="{kind}"><sheetData>{rows}</sheetData></worksheet>'
    return with_member(made, "xl/worksheets/sheet1.xml", sheet)


def _column(number: int) -> str:
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def one_chapter_again_and_again(count: int = 50_000) -> bytes:
    """A book whose spine names the same chapter: it is read each time."""
    return make_epub({"a.xhtml": page("<p>灯塔 lamp</p>" * 2_000)}, spine=["a.xhtml"] * count)


def a_chapter_deeper_than_any(depth: int = 100_000) -> bytes:
    """A page of elements in elements, which are closed nowhere."""
    return make_epub({"a.xhtml": page("<div>" * depth + "灯塔")})


def archives_in_an_archive() -> bytes:
    """A book that holds archives of archives: none is opened, but what they are is unpacked."""
    inner = make_zip({"zeros": b"\0" * (1 << 24)})
    return with_member(make_epub({"a.xhtml": page("<p>x</p>")}), "inner.zip", inner * 8)


def text_in_the_wrong_encoding() -> bytes:
    """Bytes of every encoding at once."""
    return ("灯塔" * 20_000).encode("gb18030") + ("灯塔" * 20_000).encode("utf-16-be") + bytes(range(256)) * 4_000


COSTLY, LARGE, DAMAGED, NO_TEXT = "FILE_TOO_COSTLY", "FILE_TOO_LARGE", "FILE_DAMAGED", "FILE_WITHOUT_TEXT"
BOMBS: Mapping[str, tuple[Callable[[], bytes], set[str]]] = {
    "same-page.pdf": (same_page_thousands_of_times, {COSTLY}),
    "gigabyte.pdf": (a_page_that_unpacks_to_a_gigabyte, {COSTLY, NO_TEXT}),
    "forms.pdf": (forms_within_forms, {COSTLY, NO_TEXT}),
    "picture.pdf": (a_picture_of_a_gigapixel, {COSTLY, NO_TEXT}),
    "paragraphs.docx": (many_paragraphs, {COSTLY}),
    "tables.docx": (tables_within_tables, {DAMAGED}),
    "deep.docx": (elements_without_end, {DAMAGED}),
    "wide.xlsx": (a_wide_sheet, {COSTLY, LARGE}),
    "sheets.xlsx": (one_sheet_under_many_names, {COSTLY}),
    "strings.xlsx": (many_strings, {COSTLY}),
    "spine.epub": (one_chapter_again_and_again, {COSTLY}),
    "deep.epub": (a_chapter_deeper_than_any, {NO_TEXT}),
    "archives.epub": (archives_in_an_archive, {""}),
    "encodings.txt": (text_in_the_wrong_encoding, {DAMAGED}),
}
"""Each by its name, with the codes that it may end with; an empty one where it is read after all."""
