"""`homing tokens`: who may use the server, as whom, and for what."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.opened import opened
from homing.cli.options import Data, Json
from homing.cli.output import console, print_json
from homing.errors import InvalidArgument

if TYPE_CHECKING:
    from homing.server.tokens import Tokens

app = typer.Typer(help="Tokens for the server: who may use it, and for what.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Tokens for the server: who may use it, and for what."""


@app.command()
def create(
    user: Annotated[str, typer.Option(help="Whose data it opens; `owner` is the data folder itself.")] = "owner",
    scope: Annotated[str, typer.Option(help="read, write, or admin (skills and models too).")] = "write",
    note: Annotated[str, typer.Option(help="What it is for.")] = "",
    data: Data = None,
    json: Json = False,
) -> None:
    """Create a token and show it, this once. From then on the server asks everybody for one."""
    from homing.operations.operation import SCOPES

    reach = next((one for one in SCOPES if one == scope), None)
    if reach is None:
        raise InvalidArgument(f"no scope {scope!r}; known: {', '.join(SCOPES)}")
    with tokens_of(data) as tokens:
        made = tokens.create(user, reach, note)
    if json:
        print_json({"token": made.secret, "id": made.token.id, "user": user, "scope": scope, "note": note})
        return
    console().print(made.secret, markup=False)
    console(stderr=True).print(
        f"It is shown this once. Send it as `Authorization: Bearer …`; take it back with "
        f"`homing tokens revoke {made.token.id}`"
    )


@app.command(name="list")
def list_tokens(data: Data = None, json: Json = False) -> None:
    """Show who has a token. What it is, nobody knows any more."""
    from rich.table import Table

    with tokens_of(data) as tokens:
        found = tokens.all()
    if json:
        print_json(found)
        return
    table = Table("id", "user", "scope", "created", "note")
    for one in found:
        created = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.created))
        table.add_row(one.id, one.user, one.scope, created, one.note)
    console().print(table)


@app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(help="The id that `list` shows.", metavar="ID")],
    data: Data = None,
    json: Json = False,
) -> None:
    """Make a token worthless, from the next request on."""
    with tokens_of(data) as tokens:
        gone = tokens.revoke(token_id)
    if json:
        print_json({"revoked": gone.id, "user": gone.user})
    else:
        console().print(f"{gone.id} of {gone.user} is worthless now")


@contextmanager
def tokens_of(data: Path | None) -> Iterator[Tokens]:
    """The tokens of a data folder, or of the one that is set."""
    from homing.server.tokens import Tokens

    with opened(data) as homing:
        yield Tokens(homing.database)
