"""How commands speak: tables and colour on a terminal, JSON for programs, errors that say what to do."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homing.cli.language import reads_chinese, text
from homing.errors import (
    ConfigError,
    EmbeddingError,
    FileUnreadable,
    HomingError,
    InvalidArgument,
    MissingExtra,
    NotFound,
    Refused,
    StoreError,
)
from homing.errors_zh import in_chinese

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from homing.operations.hits import HitOut, NoticeOut, SearchOut
    from homing.records import Notice

EXIT_CODES = {
    0: "success",
    1: "a check failed (`doctor`, a floor of `eval`), or a question was answered with no",
    2: "the command line is wrong",
    3: "the input or the configuration is wrong, or the named thing does not exist",
    4: "the embedding model failed",
    5: "the store failed",
    6: "both legs of the search failed",
    130: "interrupted",
}
"""What each exit code of `homing` means."""
INDENT = (0, 0, 0, 6)


def exit_code(error: HomingError) -> int:
    """The exit code of this error."""
    if isinstance(error, InvalidArgument | ConfigError | NotFound | MissingExtra | FileUnreadable | Refused):
        return 3
    if isinstance(error, EmbeddingError):
        return 4
    return 5 if isinstance(error, StoreError) else 6


def console(*, stderr: bool = False) -> Console:
    """Where people read; progress and errors go to standard error, so that results can be piped.

    On a terminal lines end between words; what is piped keeps its lines.
    """
    from rich.console import Console

    out = Console(stderr=stderr, highlight=False)
    out.soft_wrap = not out.is_terminal
    return out


def say(english: str, /, **values: object) -> None:
    """A line for people on standard output, in their language."""
    console().print(text(english, **values), markup=False)


def note(english: str, /, **values: object) -> None:
    """A line beside the answer, on standard error."""
    console(stderr=True).print(text(english, **values), markup=False)


def confirm(english: str, /, **values: object) -> None:
    """Ask, and stop here where the answer is no."""
    import typer

    typer.confirm(text(english, **values), abort=True, err=True)


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    whole: Sequence[str] = (),
    empty: str = "",
) -> None:
    """Rows under their headings, as they are: nothing is read as markup. The columns in `whole` are never cut off.

    Where there are none, `empty` says how to get some.
    """
    if not rows and empty:
        say(empty)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(*map(text, headings))
    for column, heading in zip(table.columns, headings, strict=True):
        column.no_wrap, column.overflow = heading in whole, "fold"
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    console().print(table)


def write_anything() -> None:
    """From now on what the terminal or UTF-8 has no form for, such as half an emoji, is written as its escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_json(value: Any) -> None:
    """JSON on standard output, Chinese as it is."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=_plain) + "\n")


def print_hits(
    found: SearchOut, place: Callable[[HitOut], str], nothing: str, *, length: int = 400, explain: bool = False
) -> None:
    """The hits of a search, each with its score, its place, its text and, to explain it, what each leg says."""
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    print_notice(found.notice)
    print_notice(found.spelling())
    if not found.hits:
        say(nothing)
    for hit in found.hits:
        waits = f"  {text('waiting for its vector')}" if hit.metadata.get("pending") else ""
        out.print(
            Text.assemble((f"{score_text(hit.score):4}  ", "bold green"), (place(hit), "cyan"), (waits, "yellow"))
        )
        out.print(Padding(excerpt(hit, length), INDENT), soft_wrap=False)
        for leg in hit.legs if explain else ():
            why = text("{leg}: rank {rank}, raw {score:.3f}", leg=text(leg.leg), rank=leg.rank, score=leg.score)
            if leg.share is not None:
                why += text(", weight {weight:g}, share {share:.4f}", weight=leg.weight, share=leg.share)
            out.print(Padding(Text(why, "dim"), INDENT))
    print_left_out(found.left_out, shown=bool(found.hits))


def print_left_out(count: int, *, shown: bool) -> None:
    """How many weaker hits are not shown, why there is nothing else, and how to see them."""
    if count and shown:
        say("{count:#weaker hit} left out; see with --weaker", count=count)
    elif count:
        say("{count:#hit} left out as unlikely to be right; see with --weaker", count=count)


def score_text(score: float | None) -> str:
    """A score for people; a hit that waits for its vector may have none."""
    return "–" if score is None else f"{score:.2f}"


def print_notice(notice: NoticeOut | None) -> None:
    """What a search has to say about itself."""
    if notice is not None:
        console().print(in_language(notice), style="yellow", markup=False)


def excerpt(hit: HitOut, length: int) -> Text:
    """The part of a hit that matched, or its beginning, on one line, with what was asked for highlighted."""
    from rich.text import Text

    passage, places = hit.text, hit.spans
    if "snippet" in hit.metadata:
        passage, places = hit.metadata["snippet"], hit.metadata["snippet_highlights"]
    shown = Text(re.sub(r"\s", " ", passage[:length]) + ("…" if len(passage) > length else ""))
    for start, end in places:
        shown.stylize("bold yellow", start, min(end, length))
    return shown


def in_language(notice: Notice | NoticeOut) -> str:
    """The one of two wordings that the user reads."""
    return notice.zh if reads_chinese() else notice.en


def print_error(error: HomingError, *, as_json: bool) -> None:
    """An error for a person on standard error, or for a program on standard output.

    Who reads Chinese is told in Chinese what it means, before the details.
    """
    if as_json:
        print_json({"error": {"code": error.code, "message": error.message, "details": error.details}})
        return
    from rich.text import Text

    shown = Text.assemble((f"{error.code} ", "bold red"))
    if reads_chinese():
        shown.append(f"{in_chinese(error.code)}\n")
        shown.append(error.details.get("zh", error.message))
    else:
        shown.append(error.message)
    console(stderr=True).print(shown)


@contextmanager
def progress(english: str, /, **values: object) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal; nothing where nobody looks. Call what it yields with (done, total)."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task(text(english, **values), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"cannot write {type(value).__name__} as JSON")
