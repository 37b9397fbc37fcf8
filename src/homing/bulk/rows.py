"""Rows to load: from JSONL, Parquet and text files, one or all below a folder, here or in object storage."""

from __future__ import annotations

import gzip
import importlib
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from homing.errors import HomingError, InvalidArgument, MissingExtra, NotFound, StoreError
from homing.records import Metadata, text_hash
from homing.text.sentences import windows

LINES = (".jsonl", ".jsonl.gz", ".ndjson")
TEXTS = (".md", ".txt")
KNOWN = (*LINES, ".parquet", *TEXTS)
NAMED = 20
"""Rows that could not be read which are named."""
AT_ONCE = 1_000
"""Rows of a Parquet file that are in memory."""


@dataclass(frozen=True, slots=True)
class Row:
    """A text to load."""

    id: str
    text: str
    metadata: Metadata


@dataclass
class Source:
    """The rows of a file, or of all files below a folder, by their names; always in the same order.

    `place` is a path, or an address that Arrow reads (`s3://bucket/prefix?region=…`). A row of JSONL or Parquet has a
    `text` and an `id`; without one, the hash of its text is its id. All else that it has is its metadata. A text file
    is cut into windows, each a row with `file` and `window` in its metadata. What is no row is passed over:
    `unreadable` counts those, `named` has the first of them.
    """

    place: str
    text: str = "text"
    id: str = "id"
    unreadable: int = 0
    named: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._files: _Local | _Remote = _Remote(self.place) if "://" in self.place else _Local(Path(self.place))

    def count(self) -> int:
        """How many rows there are, as far as that can be known without reading all of them; else 0."""
        names = self._files.names()
        if any(not name.endswith(".parquet") for name in names):
            return 0
        return sum(self._parquet(name).metadata.num_rows for name in names)

    def rows(self) -> Iterator[Row]:
        """Every row. Raises NotFound, InvalidArgument for another kind of file, StoreError where one is unreadable."""
        self.unreadable, self.named = 0, []
        names = self._files.names()
        if not names:
            raise NotFound(f"there is nothing to load at {self.place}; known are files that end in {', '.join(KNOWN)}")
        if not all(name.endswith(KNOWN) for name in names):
            raise InvalidArgument(f"{self.place} is of no known kind; name a file that ends in {', '.join(KNOWN)}")
        for name in names:
            try:
                if name.endswith(LINES):
                    yield from self._of_lines(name)
                elif name.endswith(".parquet"):
                    yield from self._of_parquet(name)
                else:
                    yield from self._of_text(name)
            except (OSError, EOFError, UnicodeDecodeError) as error:
                raise StoreError(f"{name} cannot be read: {error}; mend it, and run the same command again") from error

    def _of_lines(self, name: str) -> Iterator[Row]:
        with self._opened(name) as content:
            lines = io.TextIOWrapper(content, encoding="utf-8")
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    found = json.loads(line)
                except ValueError:
                    self._pass_over(f"{name}, line {number}: not JSON")
                    continue
                yield from self._row(found, f"{name}, line {number}")

    def _of_parquet(self, name: str) -> Iterator[Row]:
        number = 0
        for batch in self._parquet(name).iter_batches(batch_size=AT_ONCE):
            for found in batch.to_pylist():
                number += 1
                yield from self._row(found, f"{name}, row {number}")

    def _of_text(self, name: str) -> Iterator[Row]:
        with self._opened(name) as content:
            text = content.read().decode("utf-8-sig")
        for number, window in enumerate(windows(text), start=1):
            yield Row(f"{name}#{number}", window.text, {"file": name, "window": number})

    def _row(self, found: Any, where: str) -> Iterator[Row]:
        text = found.get(self.text) if isinstance(found, Mapping) else None
        if not isinstance(text, str) or not text.strip():
            self._pass_over(f"{where}: no {self.text!r}")
            return
        name = found.get(self.id)
        try:
            # What a file holds that JSON does not, such as a date, is kept as it is written.
            others = {key: value for key, value in found.items() if key not in (self.text, self.id)}
            metadata = json.loads(json.dumps(others, default=str))
        except (TypeError, ValueError) as error:
            self._pass_over(f"{where}: {error}")
            return
        yield Row(text_hash(text) if name is None or name == "" else str(name), text, metadata)

    def _pass_over(self, why: str) -> None:
        self.unreadable += 1
        if len(self.named) < NAMED:
            self.named.append(why)

    @contextmanager
    def _opened(self, name: str) -> Iterator[Any]:
        """The bytes of a file, unpacked."""
        with self._files.open(name) as content:
            if name.endswith(".gz"):
                content = gzip.GzipFile(fileobj=content)
            with content:
                yield content

    def _parquet(self, name: str) -> Any:
        return _arrow("parquet").ParquetFile(self._files.path(name), filesystem=self._files.filesystem)


class _Local:
    """The files below a folder of this machine, or one file, by name."""

    filesystem: Any = None

    def __init__(self, place: Path) -> None:
        self._place = place

    def names(self) -> list[str]:
        if self._place.is_file():
            return [self._place.name]
        found = (one for one in self._place.rglob("*") if one.is_file() and one.name.endswith(KNOWN))
        return sorted(str(one.relative_to(self._place)) for one in found)

    def path(self, name: str) -> str:
        return str(self._place if self._place.is_file() else self._place / name)

    def open(self, name: str) -> Any:
        return open(self.path(name), "rb")


class _Remote:
    """The files at an address that Arrow reads, by name."""

    def __init__(self, place: str) -> None:
        try:
            self.filesystem, self._path = _arrow("fs").FileSystem.from_uri(place)
        except HomingError:
            raise
        except (ValueError, OSError, TypeError) as error:
            raise InvalidArgument(f"{place.partition('?')[0]} is no address that can be read: {error}") from error

    def names(self) -> list[str]:
        fs = _arrow("fs")
        try:
            [found] = self.filesystem.get_file_info([self._path])
            if found.is_file:
                return [found.base_name]
            below = self.filesystem.get_file_info(fs.FileSelector(self._path, recursive=True, allow_not_found=True))
        except OSError as error:
            raise StoreError(f"{self._path} cannot be listed: {error}") from error
        start = len(self._path.rstrip("/")) + 1
        return sorted(one.path[start:] for one in below if one.is_file and one.path.endswith(KNOWN))

    def path(self, name: str) -> str:
        return self._path if self._path.endswith(f"/{name}") else f"{self._path.rstrip('/')}/{name}"

    def open(self, name: str) -> Any:
        return self.filesystem.open_input_stream(self.path(name), compression=None)


def _arrow(part: str) -> Any:
    try:
        return importlib.import_module(f"pyarrow.{part}")
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "reading Parquet, or from object storage, needs pyarrow; run: pip install 'homing[ray]'",
            details={"extra": "ray"},
        ) from error
