"""`homing bulk`: load many rows into a collection, on every core of this machine or of a Ray cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.calls import Answer, answers, required
from homing.cli.output import progress, say

if TYPE_CHECKING:
    from homing.bulk import Workers
    from homing.operations import Call


@answers("homing.bulk:BulkLoaded")
def run_bulk(
    call: Call,
    source: Annotated[
        str, typer.Argument(help="A .jsonl, .parquet, .txt or .md file, or a folder of them; also s3://bucket/prefix.")
    ],
    into: Annotated[str, typer.Option("--into", help="The collection to load into.")],
    ray: Annotated[str, typer.Option("--ray", help="Embed on a Ray cluster: its address, or `local`.")] = "",
    workers: Annotated[int, typer.Option("--workers", help="Processes that embed; by default one per core.")] = 0,
    text: Annotated[str, typer.Option("--text", help="The field with the text.")] = "text",
    name: Annotated[str, typer.Option("--id", help="The field with the id; without one, the hash of the text.")] = "id",
) -> Answer:
    """Load many rows into a collection.

    Rows that are there already are passed over, so if it is interrupted, run it again. Rows that cannot be read are
    counted, the first of them named, and the exit code is 1.
    """
    from functools import partial

    from homing.bulk import ProcessWorkers, RayWorkers, Source, load
    from homing.resolve import provider_of

    app = call.app
    model = app.store.model_of(into) or required(app.embedder).id
    make = partial(provider_of, app.settings, model)
    pool: Workers = RayWorkers(make, ray) if ray else ProcessWorkers(make, workers or os.cpu_count() or 1)
    try:
        with progress("Loading") as step:
            done = load(app.engine, Source(source, text=text, id=name), into, pool, model=model, progress=step)
    finally:
        pool.close()

    def show() -> None:
        say("{one.rows:#row}: {one.embedded} embedded and written, {one.unchanged} there already", one=done)
        if done.waiting:
            say("{count:#text} without a vector: the model failed", count=done.waiting)
        for one in done.named:
            say("passed over: {one}", one=one)
        if done.unreadable > len(done.named):
            say("and {count} more", count=done.unreadable - len(done.named))

    return Answer(done, show, exit_code=1 if done.unreadable else 0)
