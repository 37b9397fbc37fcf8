"""`homing worker`: embeds what waits, and nothing else."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Annotated

import typer

from homing.cli.calls import Data, Json, prints
from homing.cli.language import text
from homing.cli.lazy import reports
from homing.cli.output import print_json, say
from homing.cli.servers import log_to_stderr
from homing.errors import ConfigError, hide_passwords


@prints("homing.cli.reports:Working")
def run_worker(
    concurrency: Annotated[int, typer.Option(help="How many batches to embed at the same time.", min=1, max=256)] = 1,
    collections: Annotated[
        str, typer.Option(help="Embed only these collections, separated by commas; without it, all.")
    ] = "",
    log: Annotated[str, typer.Option(help="json, text, none, or auto: text on a terminal, else json.")] = "auto",
    data: Data = None,
    json: Json = False,
) -> None:
    """Embed what waits, until Ctrl-C.

    Any number of workers share one PostgreSQL, on any number of machines; each takes what no other has, whoever wrote
    it, and what a worker held that died is taken by the others. Servers need not embed then: homing serve --no-embed.
    """
    from homing.app import open_app
    from homing.config import load
    from homing.engine.presence import Presence
    from homing.engine.worker import WorkerOptions
    from homing.resolve import unset_keys

    log_to_stderr(log)
    wanted = tuple(one for part in collections.split(",") if (one := part.strip()))
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    settings = load().settings
    with open_app(data, settings=settings, worker=WorkerOptions(threads=concurrency, collections=wanted)) as app:
        if not app.models.embeds:
            raise ConfigError(text("no embedding model is configured: there is nothing to do; set embedding.provider"))
        presence = Presence(app.database, "worker", lambda: unset_keys(app.settings, app.models))
        app.engine.start()
        presence.start()
        told = reports.Working(
            store=hide_passwords(app.settings.store_url),
            model=app.models.identity(),
            concurrency=concurrency,
            collections=list(wanted),
        )
        if json:
            print_json(told)
        else:
            model = told.model or text("no model yet")
            say("Embedding what waits in {store} with {model}; Ctrl-C stops.", store=told.store, model=model)
        sys.stdout.flush()
        # A signal that another thread takes does not wake who waits without an end.
        while not ended.wait(1.0):
            pass
        presence.close()
