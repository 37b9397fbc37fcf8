"""How commands speak: tables and colour on a terminal, plain JSON for programs, errors that say what to do."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homing.errors import (
    ConfigError,
    EmbeddingError,
    FileUnreadable,
    HomingError,
    InvalidArgument,
    MissingExtra,
    NotFound,
    StoreError,
)
from homing.errors_zh import has_chinese, in_chinese

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from homing.records import Hit

EXIT_CODES = {
    0: "done",
    1: "a check failed (`doctor`, floors of `eval`)",
    2: "the command line is wrong",
    3: "the input or the configuration is wrong, or the named thing does not exist",
    4: "the embedding model failed",
    5: "the store failed",
    6: "the search failed on both legs",
    130: "interrupted",
}
"""What each exit code of `homing` means."""


def exit_code(error: HomingError) -> int:
    """The exit code that tells this error."""
    if isinstance(error, InvalidArgument | ConfigError | NotFound | MissingExtra | FileUnreadable):
        return 3
    if isinstance(error, EmbeddingError):
        return 4
    return 5 if isinstance(error, StoreError) else 6


def console(*, stderr: bool = False) -> Console:
    """Where people read; progress and errors go to standard error, so that results can be piped."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def write_anything() -> None:
    """From now on what the terminal or UTF-8 has no form for, such as half an emoji, is written as its escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_json(value: Any) -> None:
    """Plain JSON on standard output, Chinese as it is."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=_plain) + "\n")


def excerpt(query: str, hit: Hit, length: int) -> Text:
    """The beginning of a hit on one line, with what the query asked for highlighted."""
    from rich.text import Text

    from homing.text.tokens import spans

    whole = " ".join(hit.text.split())
    told = Text(whole[:length] + ("…" if len(whole) > length else ""))
    for span in spans(query, told.plain):
        told.stylize("bold yellow", span.start, span.end)
    return told


def print_error(error: HomingError, *, as_json: bool) -> None:
    """An error for a person on standard error, or for a program on standard output.

    Who writes Chinese or has a Chinese machine is told in Chinese what it means, before the details.
    """
    if as_json:
        print_json({"error": {"code": error.code, "message": error.message, "details": error.details}})
        return
    from rich.text import Text

    from homing.config import speaks_chinese

    told = Text.assemble((f"{error.code} ", "bold red"))
    if has_chinese(" ".join(sys.argv[1:])) or speaks_chinese():
        told.append(f"{in_chinese(error.code)}\n")
    console(stderr=True).print(told.append(error.message))


@contextmanager
def progress(label: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal; nothing where nobody looks. Call what it yields with (done, total)."""
    out = console(stderr=True)
    if quiet or not out.is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Sequence):
        return list(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"cannot write {type(value).__name__} as JSON")
