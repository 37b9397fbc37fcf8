"""Workbooks: each row a line that names its columns, so that it can be understood by itself; through openpyxl."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from typing import Any

from homing.files.archive import Archive, damaged
from homing.files.file_text import FileText, joined
from homing.files.libraries import library
from homing.files.limits import Counter, Limits
from homing.progress import Progress

# Hiding openpyxl's warnings about styles changes a list that all threads share; one at a time may do so.
_ONE_AT_A_TIME = threading.Lock()


def read_xlsx(content: bytes, filename: str, limits: Limits, progress: Progress) -> FileText:
    """The sheets that have something in them, with what formulas last came to."""
    openpyxl = library("openpyxl")
    Archive(content, filename, limits).refuse_entities()
    with _ONE_AT_A_TIME, warnings.catch_warnings(), damaged(filename):
        warnings.simplefilter("ignore")
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
        told = [_told(value) for value in row]
        if any(told):
            yield told


def _lines(rows: Iterator[list[str]]) -> Iterator[str]:
    first = next(rows, None)
    if first is None:
        return
    second = next(rows, None)
    if second is None or not _is_heading(first):
        yield _plain(first)
        if second is not None:
            yield _plain(second)
        yield from (_plain(row) for row in rows)
        return
    yield _named(first, second)
    yield from (_named(first, row) for row in rows)


def _is_heading(row: Sequence[str]) -> bool:
    """Whether a first row names the columns: several short words, all different, none a number."""
    named = [one for one in row if one]
    return (
        len(named) > 1
        and len(set(named)) == len(named)
        and all(len(one) <= 60 and not one.replace(".", "").replace("-", "").isdigit() for one in named)
    )


def _named(heading: Sequence[str], row: Sequence[str]) -> str:
    told = []
    for at, value in enumerate(row):
        name = heading[at] if at < len(heading) else ""
        if value:
            told.append(f"{name}: {value}" if name else value)
    return " | ".join(told)


def _plain(row: Sequence[str]) -> str:
    return " | ".join(value for value in row if value)


def _told(value: Any) -> str:
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
