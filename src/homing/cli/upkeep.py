"""`homing doctor`, `backup`, `config`, `store` and `postgres`: check an installation, save and move its data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from homing.cli.calls import Answer, Data, answers, checked, embed_waiting, group
from homing.cli.language import reads_chinese, text
from homing.cli.lazy import doctor, reports
from homing.cli.output import console, print_table, progress, say

if TYPE_CHECKING:
    from homing.backup import BackedUp
    from homing.config import Settings
    from homing.database.postgres.server import LocalServer, ServerStatus
    from homing.operations import Call

config = group("config", "Settings, and where they were set.")
store = group("store", "Move data from one store to another.")
postgres = group("postgres", "A PostgreSQL server with pgvector, for development.")

MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "bold red"), "skip": ("–", "dim")}


@answers("run_doctor")
def run_doctor(
    live: Annotated[bool, typer.Option("--live", help="Also ask a model behind an API, which may cost money.")] = False,
    part: Annotated[
        str, typer.Option(help="all, data (reads everything that is kept) or quick (all the rest).")
    ] = "all",
    data: Data = None,
) -> Answer:
    """Check that everything works.

    Writes and finds test texts in both languages, checks the data folder, and says how to fix what is broken. If
    something is broken, the exit code is 1.
    """
    found = doctor.diagnosis(_settings(data), live=live, part=checked(doctor.Checkup, part=part).part)

    def show() -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, show_header=False, padding=(0, 1))
        for finding in found.findings:
            mark, style = MARKS[finding.status]
            mend = Text(f"\n→ {finding.mend}", "cyan") if finding.mend else Text()
            detail = (reads_chinese() and finding.detail_zh) or finding.detail
            table.add_row(Text(mark, style), _checked(finding.check), Text.assemble(detail, mend))
        console().print(table)

    return Answer(found, show, exit_code=0 if found.healthy else 1)


def _checked(name: str) -> str:
    """What was checked: its kind in the language of the user, and the name of what is of that kind."""
    kind, _, about = name.partition(" ")
    whole = text(name)
    return whole if whole != name or not about else f"{text(kind)} {about}"


@answers("homing.cli.reports:Where")
def where(data: Data = None) -> Answer:
    """Print the data folder, and the file of the settings."""
    from homing.config import config_file

    settings, file = _settings(data), config_file()
    found = reports.Where(
        data=str(settings.data.absolute()),
        exists=settings.data.is_dir(),
        store=urlsplit(settings.store_url).scheme,
        config=None if file is None else str(file.absolute()),
    )

    def show() -> None:
        say("{one.data}" if found.exists else "{one.data} (nothing in it yet)", one=found)
        if found.store != "sqlite":
            say("records are kept in {one.store}: homing config show", one=found)
        if found.config is not None:
            say("settings from {one.config}", one=found)

    return Answer(found, show)


@answers("homing.doctor.repairing:Repaired")
def run_repair(call: Call) -> Answer:
    """Rebuild the indexes from the texts.

    Fixes a damaged keyword index, damaged indexes and copies of vectors, and vectors that are not what the model made,
    in every engine; texts that are damaged themselves are named. If something is left, the exit code is 1.
    """
    from homing.doctor.repairing import repair

    engine = call.app.engine
    done = repair(engine)

    def pending() -> int:
        return sum(engine.store.pending(one.name) for one in engine.store.collections())

    waiting = embed_waiting(pending, engine.flush) if done.waiting else 0

    def show() -> None:
        say("{texts:#text} indexed again; {before:#problem} found before", texts=done.texts, before=len(done.found))
        for one in done.found:
            say("  {one}", one=one)
        if waiting:
            say("{count:#text} without a vector yet", count=waiting)
        for one in done.left:
            say("left: {one}; save it again, or restore a backup", one=one)

    return Answer(done, show, exit_code=1 if done.left else 0)


@answers("homing.backup:BackedUp")
def run_backup(
    target: Annotated[Path, typer.Argument(help="The new folder to write.", file_okay=False)], data: Data = None
) -> Answer:
    """Save everything to a folder, while servers run.

    Keys of providers and homing.toml are not in it. If the check of the copy finds damage, the exit code is 1.
    """
    from homing.backup import back_up

    with progress("Saving") as step:
        made = back_up(_settings(data), target, progress=step)
    return _backed_up(made, restored=False)


@answers("homing.backup:BackedUp")
def run_restore(
    source: Annotated[Path, typer.Argument(help="The folder that `homing backup` wrote.", file_okay=False)],
    data: Data = None,
) -> Answer:
    """Bring a backup back to an empty data folder.

    All of it or nothing: every file is compared with its checksum first. If the check of what was restored finds
    damage, the exit code is 1.
    """
    from homing.backup import restore

    with progress("Restoring") as step:
        made = restore(_settings(data), source, progress=step)
    return _backed_up(made, restored=True)


def _backed_up(made: BackedUp, *, restored: bool) -> Answer:
    saved = "{made.files:#file}, {size:.1f} MB, saved to {made.folder}"
    summary = "{made.files:#file}, {size:.1f} MB, restored to {made.folder}" if restored else saved

    def show() -> None:
        for command in made.commands:
            say("$ {command}", command=command)
        say(summary, made=made, size=made.bytes / 1024**2)
        if made.left_out:
            say("not part of a backup: {names}", names=", ".join(made.left_out))
        for one in made.problems:
            say("damaged: {one}", one=one)
        if made.problems:
            say("homing repair rebuilds what can be rebuilt")

    return Answer(made, show, exit_code=1 if made.problems else 0)


@config.command(name="show")
@answers("homing.cli.reports:Setting[]")
def show_settings() -> Answer:
    """Print every setting and where it was set. Keys are masked."""
    from homing.config import load

    rows = list(load().rows())
    found = [reports.Setting(key=key, value=value, source=source) for key, value, source in rows]
    return Answer(found, lambda: print_table(("setting", "value", "set in"), rows))


@store.command()
@answers("homing.stores.copying:Copied")
def copy(
    from_url: Annotated[str, typer.Argument(help="The store to read, e.g. sqlite:///data/homing.db.")],
    to_url: Annotated[str, typer.Argument(help="The empty store to fill, e.g. lance://data/lance or postgresql://…")],
    user: Annotated[
        str, typer.Option(help="PostgreSQL: fill the part of this user of a server, which is empty yet.")
    ] = "",
) -> Answer:
    """Copy everything to another store, and compare the two.

    If it is interrupted, run it again: it continues where it stopped. Models and providers are not copied; add them
    again. LanceDB takes records only: keep the source for its documents, memories and devices. With --user everything
    becomes that user's, as when the folders of a server's users move to PostgreSQL.
    """
    from contextlib import closing

    from homing.database.copying import Table
    from homing.errors import InvalidArgument
    from homing.moving import move
    from homing.server import tokens
    from homing.stores import open_store
    from homing.stores.store import MultiUserStore

    with (
        closing(open_store(from_url, existing=True)) as source,
        closing(open_store(to_url)) as target,
        progress("Copying") as step,
    ):
        if user and not isinstance(target, MultiUserStore):
            raise InvalidArgument(text("only a PostgreSQL store has parts for users; leave --user out"))
        filled = target.for_user(user) if user and isinstance(target, MultiUserStore) else target
        done = move(source, filled, tables=[Table(tokens.COMPONENT, tokens.STEPS, "tokens", "id")], progress=step)

    def show() -> None:
        say("{one.records:#record} in {one.collections:#collection} copied", one=done)
        if done.resumed:
            say("{count} of them by an earlier run", count=done.resumed)
        say("both stores have the checksum {sum}", sum=done.checksum)
        if source.database is not None and target.database is None:
            say("LanceDB takes records only: keep the source for its documents, memories and devices")

    return Answer(done, show)


@postgres.command()
@answers("homing.database.postgres.server:ServerStatus")
def start(
    data: Data = None,
    port: Annotated[
        int | None, typer.Option(help="The port on 127.0.0.1; without it, a free one.", min=1, max=65535)
    ] = None,
) -> Answer:
    """Start the server and print its address. It keeps its data in the data folder."""
    return _status(_server(data).start(port=port))


@postgres.command()
@answers("homing.cli.reports:ServerStopped")
def stop(
    data: Data = None,
    delete: Annotated[bool, typer.Option("--delete", help="Also delete all of its data.")] = False,
) -> Answer:
    """Stop the server. Its data is kept."""
    server = _server(data)
    stopped = server.stop()
    if delete:
        server.remove()

    def show() -> None:
        say("stopped" if stopped else "it was not running")
        if delete:
            say("its data is deleted")

    return Answer(reports.ServerStopped(stopped=stopped, deleted=delete), show)


@postgres.command()
@answers("homing.database.postgres.server:ServerStatus")
def status(data: Data = None) -> Answer:
    """Show whether the server is running, and at which address."""
    return _status(_server(data).status())


def _settings(data: Path | None) -> Settings:
    from homing.config import load

    return load(overrides={} if data is None else {"data": str(data)}).settings


def _server(data: Path | None) -> LocalServer:
    from homing.database.postgres.server import LocalServer

    return LocalServer(_settings(data).data / "postgres")


def _status(found: ServerStatus) -> Answer:
    said = (
        "running at {one.url}" if found.running else "not running in {one.folder}; start it with: homing postgres start"
    )
    return Answer(found, lambda: say(said, one=found))
