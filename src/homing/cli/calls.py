"""How commands call operations: the options that they share, the data folder, and inputs that are checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from homing.errors import InvalidArgument

if TYPE_CHECKING:
    from pydantic import BaseModel

    from homing.app import Homing
    from homing.operations import Call
    from homing.records import Mode

Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, for programs.")]
Data = Annotated[Path | None, typer.Option("--data", help="The data folder to use.", file_okay=False)]
Question = Annotated[str, typer.Argument(help="What to look for, in Chinese or English.")]
SearchMode = Annotated[str, typer.Option("--mode", help="hybrid, semantic or keyword.")]

T = TypeVar("T", bound="BaseModel")
Step = Callable[[int, int], None]


def group(about: str) -> typer.Typer:
    """A group of commands; without a command it prints its help."""
    return typer.Typer(help=about, no_args_is_help=True, rich_markup_mode=None)


def opened(data: Path | None) -> Homing:
    """The app of a data folder, or of the one that is set; use it in a `with` block."""
    from homing.app import open_app
    from homing.config import load

    settings = load().settings
    return open_app(data or settings.data, settings=settings)


@contextmanager
def calling(data: Path | None, *, user: str | None = None) -> Iterator[Call]:
    """A call of an operation by whoever may do everything in a data folder, for themselves or another user."""
    from homing.app import OWNER
    from homing.operations import Call

    with opened(data) as app:
        yield Call(app, app, user=user or OWNER)


def checked(kind: type[T], **given: Any) -> T:
    """The input of an operation. An option that was not given has the operation's own default.

    Raises InvalidArgument with what to write instead.
    """
    from pydantic import ValidationError

    try:
        return kind(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise InvalidArgument("; ".join(_problem(one) for one in problems)) from None


def mode_of(name: str) -> Mode:
    """The mode of that name. Raises InvalidArgument with the ones that exist."""
    match name:
        case "hybrid" | "semantic" | "keyword":
            return name
    raise InvalidArgument(f"there is no mode {name!r}; known: semantic, hybrid, keyword")


def work_through(pending: Callable[[], int], flush: Callable[[], object], step: Step) -> int:
    """Embed what waits and report how far that has come; returns how many are left."""
    total = pending()
    with ThreadPoolExecutor(1) as worker:
        working = worker.submit(flush)
        while not working.done():
            step(max(0, total - pending()), total)
            wait([working], timeout=0.2)
        working.result()
    return pending()


def _problem(error: Any) -> str:
    from homing.operations.problems import NOT_BLANK, problem

    name = str(error["loc"][0]).replace("_", " ")
    context = error.get("ctx", {})
    if error["type"] == "string_too_short" or context.get("pattern") == NOT_BLANK:
        return f"the {name} is empty"
    if error["type"] == "literal_error":
        known = re.findall(r"'([^']*)'", context["expected"])
        return f"there is no {name.removesuffix('s')} {error['input']!r}; known: {', '.join(known)}"
    return f"{name} {problem(error)}"
