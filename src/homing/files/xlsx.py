"""Workbooks: each row a line that names its columns, so that it can be understood by itself; through openpyxl."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from itertools import chain, islice
from typing import Any

from homing.files.archive import Archive, damaged
from homing.files.file_text import Counter, FileText, Limits, joined
from homing.progress import Progress


def read_xlsx(content: bytes, filename: str, limits: Limits, progress: Progress) -> FileText:
    """The sheets that have something in them, with what formulas last came to."""
    import openpyxl

    Archive(content, filename, limits).refuse_entities()
    with damaged(filename):
        workbook = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
        try:
            cells = Counter(filename, "cells", limits.cells)
            characters = Counter(filename, "characters", limits.characters)
            text, parts = joined((sheet.title, _sheet(sheet, cells, characters)) for sheet in workbook.worksheets)
        finally:
            workbook.close()
    return FileText(text, "xlsx", filename, parts)


def _sheet(sheet: Any, cells: Counter, characters: Counter) -> str:
    # What a sheet declares as its extent may be anything; the rows themselves are counted.
    sheet.reset_dimensions()
    lines = []
    for line in _lines(_rows(sheet, cells)):
        characters.add(len(line))
        lines.append(line)
    return "\n".join([f"## {sheet.title}", "", *lines]) if lines else ""


def _rows(sheet: Any, cells: Counter) -> Iterator[list[str]]:
    for row in sheet.iter_rows(values_only=True):
        cells.add(max(1, len(row)))
        shown = [_cell(value) for value in row]
        if any(shown):
            yield shown


def _lines(rows: Iterator[list[str]]) -> Iterator[str]:
    beginning = list(islice(rows, 2))
    heading = beginning.pop(0) if len(beginning) == 2 and _is_heading(beginning[0]) else []
    yield from (_named(heading, row) for row in chain(beginning, rows))


def _is_heading(row: Sequence[str]) -> bool:
    """Whether a first row names the columns: several short words, all different, none a number."""
    named = [one for one in row if one]
    return (
        len(named) > 1
        and len(set(named)) == len(named)
        and all(len(one) <= 60 and not one.replace(".", "").replace("-", "").isdigit() for one in named)
    )


def _named(heading: Sequence[str], row: Sequence[str]) -> str:
    """The values of a row that has any, with the names of their columns where these have one."""
    shown = []
    for at, value in enumerate(row):
        name = heading[at] if at < len(heading) else ""
        if value:
            shown.append(f"{name}: {value}" if name else value)
    return " | ".join(shown)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    if isinstance(value, date | time):
        return value.isoformat()
    return " ".join(str(value).split())
