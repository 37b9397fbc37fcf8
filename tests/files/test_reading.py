"""What `read_file` makes of files of every kind, and what it says of those that it cannot read."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path

import pytest

from homing.errors import (
    Canceled,
    FileEncrypted,
    FileTooLarge,
    FileUnreadable,
    FileWithoutText,
    InvalidArgument,
    NotFound,
    UnsupportedFile,
)
from homing.files import read_file
from homing.files.pdf import unwrapped
from tests.files.made_files import (
    make_docx,
    make_epub,
    make_pdf,
    make_xlsx,
    member,
    page,
    with_member,
)

# Plain text and Markdown


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_a_text_is_read_in_whatever_encoding_an_editor_writes(encoding: str) -> None:
    assert read_file("他一个人守着灯塔。\n第二行 English".encode(encoding), "灯塔.txt").text.startswith(
        "他一个人守着灯塔。\n"
    )


def test_markdown_stays_as_it_is_written() -> None:
    read = read_file("# 标题\r\n\r\n- 一\r\n- 二 `code`\r\n".encode(), "笔记.MD")
    assert (read.format, read.text, read.parts) == ("md", "# 标题\r\n\r\n- 一\r\n- 二 `code`\r\n", ())


def test_a_path_is_read_and_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "灯塔 notes.txt"
    path.write_text("三十年没有和人说话。", encoding="utf-8")
    assert read_file(path).filename == "灯塔 notes.txt"
    assert read_file(str(path), "other.md").format == "md"


def test_characters_that_cannot_be_read_are_told() -> None:
    read = read_file("守着灯塔的人".encode() * 40 + b"\xff" + "。".encode(), "a.txt")
    assert read.notes == ("1 characters could not be read",)


# PDF


def test_a_pdf_is_read_page_by_page() -> None:
    read = read_file(make_pdf(["Retrieval in two languages"], ["第二页讲检索"]), "报告.pdf")
    assert read.text == "Retrieval in two languages\n\n第二页讲检索"
    assert [part.name for part in read.parts] == ["1", "2"]
    assert read.part_at(read.text.index("第二页")) == "2"
    assert read.part_at(0) == "1"


def test_the_pages_of_a_pdf_are_told_as_they_are_read_and_reading_can_be_ended() -> None:
    told: list[tuple[int, int]] = []

    def enough(done: int, total: int) -> None:
        told.append((done, total))
        if done == 2:
            raise Canceled("enough")

    content = make_pdf(["第一页"], ["第二页"], ["第三页"])
    with pytest.raises(Canceled):
        read_file(content, "a.pdf", progress=enough)
    assert told == [(1, 3), (2, 3)]


def test_lines_that_the_page_broke_are_joined_in_both_languages() -> None:
    chinese = [
        "　　检索系统把文字变成向量和关键词，两边同时搜索，再把结果融",
        "合起来；一边失败时另一边照常回答。",
        "　　第二段从这里开始。",
    ]
    english = [
        "A retrieval engine searches both by meaning and by words, inter-",
        "nationally and locally, and it says so when one of them fails to",
        "answer in time.",
    ]
    read = read_file(make_pdf(chinese, english), "a.pdf")
    assert "再把结果融合起来" in read.text
    assert "回答。\n第二段" in read.text
    assert "words, internationally and locally" in read.text
    assert "fails to answer in time." in read.text


def test_short_lines_stay_lines() -> None:
    assert (
        read_file(make_pdf(["苹果 3 元", "香蕉 5 元", "橙子 4 元"]), "a.pdf").text == "苹果 3 元\n香蕉 5 元\n橙子 4 元"
    )


def test_broken_fonts_give_text_that_can_be_written() -> None:
    assert unwrapped("a\ud83d\ude00b\ud800c\0") == "a\U0001f600b\ufffdc"


def test_a_pdf_that_asks_for_a_password_says_so() -> None:
    with pytest.raises(FileEncrypted, match=r"合同\.pdf asks for a password") as raised:
        read_file(make_pdf(["secret"], password="x"), "合同.pdf")
    assert raised.value.code == "FILE_ENCRYPTED"


def test_a_pdf_whose_owner_only_forbids_printing_is_read() -> None:
    assert read_file(make_pdf(["open to readers"], owner_password="y"), "a.pdf").text == "open to readers"


def test_a_scanned_pdf_says_that_it_has_no_text() -> None:
    with pytest.raises(FileWithoutText, match="run OCR"):
        read_file(make_pdf([], []), "扫描.pdf")


def test_pages_without_text_among_others_are_told() -> None:
    read = read_file(make_pdf(["one"], [], ["three"]), "a.pdf")
    assert read.notes == ("1 pages have no text (pictures?): 2",)
    assert [part.name for part in read.parts] == ["1", "3"]


# Word


def test_a_word_document_keeps_headings_tables_and_order() -> None:
    made = make_docx(("总则", 1), "第一段。", [["姓名", "部门"], ["张三", "研发"]], ("附则", 2), "Last paragraph.")
    assert read_file(made, "a.docx").text == (
        "# 总则\n\n第一段。\n\n姓名 | 部门\n张三 | 研发\n\n## 附则\n\nLast paragraph."
    )


def test_text_in_content_controls_and_insertions_counts_and_deleted_text_does_not() -> None:
    namespace = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = (
        "<w:sdt><w:sdtContent><w:p><w:r><w:t>控件里的文字</w:t></w:r></w:p></w:sdtContent></w:sdt>"
        "<w:p><w:ins><w:r><w:t>inserted</w:t></w:r></w:ins><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del>"
        "<w:r><w:tab/><w:t>tail</w:t></w:r></w:p>"
    )
    made = with_member(
        make_docx("x"), "word/document.xml", f"<w:document {namespace}><w:body>{body}</w:body></w:document>"
    )
    assert read_file(made, "a.docx").text == "控件里的文字\n\ninserted\ttail"


# Excel


def test_each_row_of_a_sheet_names_its_columns() -> None:
    made = make_xlsx(
        {
            "员工": [
                ["姓名", "入职", "工资"],
                ["张三", date(2024, 5, 1), 12000.0],
                ["李四", datetime(2024, 6, 1, 9, 30), 9.5],
            ],
            "空": [],
            "Notes": [["only one line of text"], [None], [True, 3]],
        }
    )
    read = read_file(made, "表.xlsx")
    assert read.text == (
        "## 员工\n\n姓名: 张三 | 入职: 2024-05-01 | 工资: 12000\n姓名: 李四 | 入职: 2024-06-01 09:30 | 工资: 9.5\n\n"
        "## Notes\n\nonly one line of text\nTRUE | 3"
    )
    assert [part.name for part in read.parts] == ["员工", "Notes"]


def test_a_sheet_with_a_cell_far_away_is_refused_before_it_costs_anything() -> None:
    made = make_xlsx({"远": [["a", "b"], ["1", "2"]]})
    sheet = member(made, "xl/worksheets/sheet1.xml").decode()
    rows = "".join(f'<row r="{n}"><c r="XFD{n}" t="inlineStr"><is><t>x</t></is></c></row>' for n in range(3, 500))
    far = with_member(made, "xl/worksheets/sheet1.xml", sheet.replace("</sheetData>", rows + "</sheetData>"))
    with pytest.raises(FileTooLarge, match="cells"):
        read_file(far, "a.xlsx")


# E-books


def test_a_book_is_read_in_the_order_of_its_spine() -> None:
    made = make_epub(
        {"b.xhtml": page("<h1>第二章</h1><p>后来。</p>"), "第 a.xhtml": page("<h1>第一章</h1><p>从前。</p>")},
        spine=["第 a.xhtml", "b.xhtml"],
    )
    read = read_file(made, "书.epub")
    assert read.text == "# 第一章\n\n从前。\n\n# 第二章\n\n后来。"
    assert read.part_at(read.text.index("后来")) == "第二章"


def test_markup_becomes_text_a_person_would_read() -> None:
    body = (
        "<p>一&nbsp;个 <em>强调</em>的<br/>词 &copy; 2024</p><ul><li>甲</li><li>乙</li></ul><script>var x = 1;</script>"
        "<p>汉<ruby>字<rt>zi</rt></ruby></p><table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>"
    )
    assert read_file(make_epub({"a.xhtml": page(body)}), "a.epub").text == (
        "一 个 强调的\n词 © 2024\n\n- 甲\n- 乙\n\n汉字\n\nA | B\n1 | 2"
    )


def test_a_chapter_with_broken_markup_is_still_read() -> None:
    made = make_epub({"a.xhtml": "<html><body><p>没有关上的段落<p>another & more<br></body>"})
    assert read_file(made, "a.epub").text == "没有关上的段落\n\nanother & more"


def test_a_protected_book_says_so() -> None:
    lock = (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<EncryptedData xmlns="http://www.w3.org/2001/04/xmlenc#"><CipherData>'
        '<CipherReference URI="OEBPS/a.xhtml"/></CipherData></EncryptedData></encryption>'
    )
    with pytest.raises(FileEncrypted, match="DRM"):
        read_file(make_epub({"a.xhtml": b"\x01\x02"}, **{"META-INF/encryption.xml": lock}), "a.epub")


def test_a_chapter_cannot_be_fetched_from_outside_the_book() -> None:
    made = make_epub({"../../../../etc/passwd": page("<p>inside</p>"), "a.xhtml": page("<p>text</p>")})
    assert read_file(made, "a.epub").text == "text"


# What cannot be read


@pytest.mark.parametrize(
    ("name", "advice"),
    [("a.doc", "save it as .docx"), ("a.PPTX", "export it as .pdf"), ("扫描.png", "run OCR"), ("x.exe", "one of: ")],
)
def test_an_unknown_type_says_what_to_do(name: str, advice: str) -> None:
    with pytest.raises(UnsupportedFile, match=advice) as raised:
        read_file(b"anything", name)
    assert raised.value.code == "UNSUPPORTED_FILE"


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (make_pdf(["x y z"]), "pdf"),
        (make_docx("x y z"), "docx"),
        (make_xlsx({"S": [["x y z"]]}), "xlsx"),
        (make_epub({"a.xhtml": page("<p>x y z</p>")}), "epub"),
        (b"x y z", "txt"),
    ],
)
def test_a_name_without_an_ending_is_known_by_its_content(content: bytes, form: str) -> None:
    read = read_file(content, "README")
    assert read.format == form
    assert "x y z" in read.text


@pytest.mark.parametrize("name", ["a.pdf", "a.docx", "a.xlsx", "a.epub", "a.txt"])
def test_bytes_of_something_else_are_damaged_whatever_the_name(name: str) -> None:
    for content in (b"\0\1\2" * 100, b"PK\x03\x04" + b"\0" * 200, b"%PDF-1.7\n\0garbage"):
        with pytest.raises(FileUnreadable):
            read_file(content, name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("a.pdf", make_pdf(["the text of a page"] * 5)),
        ("a.docx", make_docx("text " * 50)),
        ("a.xlsx", make_xlsx({"S": [["a", "b"], [1, 2]]})),
        ("a.epub", make_epub({"a.xhtml": page("<p>text</p>")})),
    ],
)
def test_a_file_cut_or_changed_anywhere_gives_a_clear_error_or_text(name: str, whole: bytes) -> None:
    for at in range(1, len(whole), max(1, len(whole) // 25)):
        for broken in (whole[:at], whole[:at] + b"\xff" + whole[at + 1 :]):
            with suppress(FileUnreadable):
                assert read_file(broken, name).text


def test_an_office_file_with_a_password_says_so() -> None:
    with pytest.raises(FileEncrypted, match="password"):
        read_file(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "a.docx")


@pytest.mark.parametrize("content", [b"", b" \n\t ", b"---\n***\n"])
def test_a_file_without_text_says_so(content: bytes) -> None:
    with pytest.raises(FileWithoutText):
        read_file(content, "a.md")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_file(tmp_path / "none.txt")
    with pytest.raises(InvalidArgument, match="not a file"):
        read_file(tmp_path)
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(InvalidArgument, match="not a file"):
        read_file(tmp_path / "pipe.txt")
    with pytest.raises(InvalidArgument, match="filename"):
        read_file(b"text")
