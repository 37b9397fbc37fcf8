"""`homing docs`: the guide, in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from homing.cli.calls import Answer, answers
from homing.cli.lazy import reports
from homing.cli.output import console


def _pages() -> list[str]:
    from homing import guide

    return guide.page_names()


@answers("homing.cli.reports:GuidePage")
def show_guide(
    page: Annotated[
        str | None,
        typer.Argument(help="A page, e.g. mcp; without it, the list of all pages.", autocompletion=_pages),
    ] = None,
) -> Answer:
    """Read the guide.

    `homing serve --open` shows it in the browser, with a description of the HTTP API. For your own documents, see
    `homing documents`.
    """
    from homing import guide

    name = (page or guide.INDEX).removesuffix(".md")
    text = guide.page(name)

    def show() -> None:
        if not console().is_terminal:
            typer.echo(text, nl=False)
            return
        from rich.markdown import Markdown

        console().print(Markdown(text, hyperlinks=False), soft_wrap=False)

    return Answer(reports.GuidePage(page=name, text=text), show)
