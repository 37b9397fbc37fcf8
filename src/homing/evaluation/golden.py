"""Questions whose answers are known, read from disk."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from homing.errors import InvalidArgument, NotFound

Language = Literal["zh", "en", "mixed"]

_HAN = re.compile(r"[\u3400-\u9fff]")
_LATIN = re.compile(r"[A-Za-z]{2,}")


@dataclass(frozen=True, slots=True)
class Question:
    """A query and how relevant each document is to it; none at all means that nothing should be found."""

    id: str
    text: str
    relevant: Mapping[str, float]

    @property
    def language(self) -> Language:
        """Chinese, English, or both."""
        if not _HAN.search(self.text):
            return "en"
        return "mixed" if _LATIN.search(self.text) else "zh"


@dataclass(frozen=True, slots=True)
class GoldenSet:
    """A corpus by id, and questions about it."""

    name: str
    corpus: Mapping[str, str]
    questions: tuple[Question, ...]


def read_golden(path: Path) -> GoldenSet:
    """A folder with `corpus.jsonl`, `queries.jsonl` and `qrels.jsonl`, or one JSONL file.

    The folder's corpus rows have `id`, `text` and perhaps `name` or `title`, which stands before the text; queries have
    `id` and `text`; qrels have `qid`, `did` and `score`. The single file holds rows `{"id", "text"}` for documents and
    rows `{"query", "expected": [ids]}` for questions; an empty list means that nothing should be found.
    """
    if path.is_dir():
        return _folder(path)
    if not path.is_file():
        raise NotFound(f"there is no golden set {path}; give a JSONL file or a folder with corpus, queries and qrels")
    return _file(path)


def _folder(path: Path) -> GoldenSet:
    relevant: dict[str, dict[str, float]] = {}
    for row in _rows(path / "qrels.jsonl", "qid", "did"):
        gain = row.get("score", 1)
        if not isinstance(gain, int | float):
            raise InvalidArgument(f"{path / 'qrels.jsonl'}: a score is a number; got {gain!r}")
        relevant.setdefault(str(row["qid"]), {})[str(row["did"])] = float(gain)
    corpus = {str(row["id"]): document_text(row) for row in _rows(path / "corpus.jsonl", "id", "text")}
    questions = tuple(
        Question(str(row["id"]), row["text"], relevant.get(str(row["id"]), {}))
        for row in _rows(path / "queries.jsonl", "id", "text")
    )
    return GoldenSet(path.name, corpus, questions)


def _file(path: Path) -> GoldenSet:
    corpus: dict[str, str] = {}
    questions: list[Question] = []
    for row in _rows(path):
        if "query" in row:
            expected = row.get("expected", [])
            if not isinstance(expected, list):
                raise InvalidArgument(f"{path}: `expected` is a list of ids; got {expected!r}")
            questions.append(Question(str(len(questions)), row["query"], {str(key): 1.0 for key in expected}))
        elif "id" in row and "text" in row:
            corpus[str(row["id"])] = document_text(row)
        else:
            raise InvalidArgument(f"{path}: a row has neither `query` and `expected` nor `id` and `text`: {row}")
    return GoldenSet(path.stem, corpus, tuple(questions))


def document_text(row: Mapping[str, Any]) -> str:
    """What is embedded for a corpus row: its name or title, then its text."""
    title = str(row.get("name") or row.get("title") or "")
    return f"{title}: {row['text']}" if title and title != row["text"] else str(row["text"])


def _rows(path: Path, *needed: str) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InvalidArgument(f"{path}:{number} is not JSON: {error}") from error
        if not isinstance(row, dict) or any(key not in row for key in needed):
            raise InvalidArgument(f"{path}:{number} must be an object with {', '.join(needed) or 'fields'}")
        for key in ("text", "query"):
            if not isinstance(row.get(key, ""), str):
                raise InvalidArgument(f"{path}:{number}: `{key}` is a text; got {row[key]!r}")
        yield row
