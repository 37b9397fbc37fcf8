"""How commands call operations: the options that they share, inputs that are checked, answers that are printed."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from homing.cli.language import reads_chinese, text
from homing.cli.output import print_json, progress
from homing.errors import InvalidArgument, ModelNotReady

if TYPE_CHECKING:
    from pydantic import BaseModel

    from homing.embedders.provider import EmbeddingProvider
    from homing.operations import Call
    from homing.operations.models import Nothing
    from homing.records import Mode

Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, for programs.")]
Data = Annotated[Path | None, typer.Option("--data", help="The data folder to use.", file_okay=False)]
Question = Annotated[str, typer.Argument(help="What to look for, in Chinese or English.")]
Weaker = Annotated[bool, typer.Option("--weaker", help="Also show weaker hits, which are left out by default.")]
SearchMode = Annotated[str, typer.Option("--mode", help="hybrid, semantic or keyword.")]

T = TypeVar("T", bound="BaseModel")
F = TypeVar("F", bound=Callable[..., Any])


class Answer(NamedTuple):
    """What a command found: `--json` prints it, `show` shows it to a person."""

    found: Any
    show: Callable[[], object]
    exit_code: int = 0


def group(name: str, about: str) -> typer.Typer:
    """A group of commands; without a command it prints its help."""
    return typer.Typer(name=name, help=about, no_args_is_help=True, rich_markup_mode=None)


def prints(*what: str) -> Callable[[F], F]:
    """Say what a command prints with `--json`: operations by name, or types as `module:name`, `[]` for a list of it."""

    def marked(function: F) -> F:
        function.prints = what  # type: ignore[attr-defined]
        return function

    return marked


def answers(*what: str) -> Callable[[Callable[..., Answer]], Callable[..., None]]:
    """Make a function that returns an Answer a command with `--json`; see `prints`.

    Where it takes a `call`, the command has `--data`, and the data folder is open until the answer is shown.
    """

    def made(function: Callable[..., Answer]) -> Callable[..., None]:
        # What only the type checker knows is nothing that the command line has.
        for name in ("call", "return"):
            function.__annotations__.pop(name, None)
        own = inspect.signature(function, eval_str=True).parameters
        calls = "call" in own
        options = {"data": Data, "json": Json} if calls else {"json": Json}
        parameters = [one.replace(kind=one.KEYWORD_ONLY) for name, one in own.items() if name != "call"]
        for name, kind in options.items():
            default = None if name == "data" else False
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default))

        @prints(*what)
        @wraps(function)
        def command(*, json: bool, **given: Any) -> None:
            if calls:
                with calling(given.pop("data")) as call:
                    answer = _shown(function(call, **given), json)
            else:
                answer = _shown(function(**given), json)
            if json:
                print_json(answer.found)
            if answer.exit_code:
                raise typer.Exit(answer.exit_code)

        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return made


def _shown(answer: Answer, json: bool) -> Answer:
    if not json:
        answer.show()
    return answer


@contextmanager
def calling(data: Path | None) -> Iterator[Call]:
    """A call by whoever may do everything in a data folder, or in the one that is set."""
    from homing.app import open_app
    from homing.config import load
    from homing.operations import Call

    settings = load().settings
    with open_app(data, settings=settings) as app:
        yield Call(app, app)


def checked(kind: type[T], **given: Any) -> T:
    """The input of an operation. An option that was not given has the operation's own default.

    Raises InvalidArgument with what to write instead.
    """
    from pydantic import ValidationError

    try:
        return kind(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise InvalidArgument(text("; ").join(_problem(one) for one in problems)) from None


def nothing() -> Nothing:
    """The input of an operation that takes none."""
    from homing.operations.models import Nothing

    return Nothing()


def piped(instead: str) -> str:
    """What was piped in. Raises InvalidArgument where nothing was: on a terminal nobody knows that it is waited for."""
    given = "" if sys.stdin.isatty() else sys.stdin.read()
    if not given:
        raise InvalidArgument(text("there is no text; {instead}, or pipe it in", instead=text(instead)))
    return given


def required(model: EmbeddingProvider | None) -> EmbeddingProvider:
    """The model that is configured. Raises ModelNotReady where none is."""
    if model is None:
        raise ModelNotReady(text("no embedding model is configured; set embedding.provider to `bundled`"))
    return model


def mode_of(name: str) -> Mode:
    """The mode of that name. Raises InvalidArgument with the ones that exist."""
    match name:
        case "hybrid" | "semantic" | "keyword":
            return name
    raise InvalidArgument(text("there is no mode {name!r}; known: semantic, hybrid, keyword", name=name))


def embed_waiting(pending: Callable[[], int], flush: Callable[[], object]) -> int:
    """Embed what waits and show how far that has come; returns how many are left."""
    total = pending()
    with progress("Embedding") as step, ThreadPoolExecutor(1) as worker:
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
        return text("the {name} is empty; say what it is", name=text(name))
    if error["type"] == "literal_error":
        known = ", ".join(re.findall(r"'([^']*)'", context["expected"]))
        named = text(name.removesuffix("s"))
        return text("there is no {name} {given!r}; known: {known}", name=named, given=error["input"], known=known)
    wrong = problem(error)
    return f"{text(name)} {wrong.zh if reads_chinese() else wrong.en}"
