"""Word documents: paragraphs, headings, lists and tables in their order, through python-docx."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from homing.files.archive import Archive, damaged
from homing.files.file_text import BETWEEN, Counter, FileText, Limits
from homing.progress import Progress

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARAGRAPH, _TABLE, _RUN_TEXT = (f"{_W}{tag}" for tag in ("p", "tbl", "t"))
_ROWS = "./w:tr | ./w:sdt/w:sdtContent/w:tr"
_CELLS = "./w:tc | ./w:sdt/w:sdtContent/w:tc"
# What was deleted with changes tracked is not part of the document; the fallback repeats what its sibling draws.
_LEFT_OUT = frozenset(
    {f"{_W}del", f"{_W}moveFrom", "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"}
)
_SPACES = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}
_HEADING = re.compile(r"(?:heading|标题|標題)\s*(\d)", re.IGNORECASE)


def read_docx(content: bytes, filename: str, limits: Limits, progress: Progress) -> FileText:
    """The text of a document with its footnotes at the end; headings become those of Markdown."""
    import docx

    Archive(content, filename, limits).refuse_entities()
    counter = Counter(filename, "characters", limits.characters)
    with damaged(filename):
        document = docx.Document(io.BytesIO(content))
        levels = {style.style_id: _level(style.name) for style in document.styles}
        blocks = []
        for root in (document.element.body, *_footnotes(document)):
            for block in _blocks(root, levels):
                counter.add(len(block))
                blocks.append(block)
    return FileText(BETWEEN.join(blocks), "docx", filename)


def _footnotes(document: Any) -> Iterator[Any]:
    from docx.oxml import parse_xml

    for relation in document.part.rels.values():
        if not relation.is_external and relation.reltype.rpartition("/")[2] in ("footnotes", "endnotes"):
            yield parse_xml(relation.target_part.blob)


def _level(style: str | None) -> int:
    if style is not None and style.lower() in ("title", "标题", "標題"):
        return 1
    found = _HEADING.match(style or "")
    return int(found[1]) if found else 0


def _blocks(element: Any, levels: dict[str, int]) -> Iterator[str]:
    """The paragraphs and tables below an element, also those in content controls and text boxes."""
    for child in element:
        if child.tag == _TABLE:
            table = "\n".join(row for row in (_row(one) for one in child.xpath(_ROWS)) if row)
            if table:
                yield table
        elif child.tag == _PARAGRAPH:
            text = "".join(_text(child)).strip()
            if text:
                level = levels.get(child.style or "", 0)
                yield f"{'#' * min(level, 6)} {text}" if level else text
        elif child.tag not in _LEFT_OUT:
            yield from _blocks(child, levels)


def _row(row: Any) -> str:
    cells = [" ".join("".join(_text(cell)).split()) for cell in row.xpath(_CELLS)]
    return " | ".join(cells) if any(cells) else ""


def _text(element: Any) -> Iterator[str]:
    for child in element:
        if child.tag == _RUN_TEXT:
            yield child.text or ""
        elif child.tag in _SPACES:
            yield _SPACES[child.tag]
        elif child.tag not in _LEFT_OUT:
            if child.tag == _PARAGRAPH:
                yield "\n"
            yield from _text(child)
