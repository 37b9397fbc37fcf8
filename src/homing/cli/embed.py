"""`homing embed`: vectors for texts."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from homing.cli.options import Json
from homing.cli.output import console, print_json
from homing.errors import InvalidArgument, ModelNotReady


def embed_texts(
    texts: Annotated[list[str] | None, typer.Argument(help="Texts; without any, lines of standard input.")] = None,
    query: Annotated[bool, typer.Option("--query", help="The texts are questions, not documents.")] = False,
    json: Json = False,
) -> None:
    """Turn texts into vectors. For people: how near the texts are to each other."""
    from homing.config import load
    from homing.resolve import resolve_embedder

    texts = texts or [line.rstrip("\r\n") for line in sys.stdin if line.strip()]
    if not texts:
        raise InvalidArgument("there is nothing to embed; give texts as arguments or lines on standard input")
    embedder = resolve_embedder(load().settings)
    if embedder is None:
        raise ModelNotReady("no embedding model is configured; set embedding.provider to `bundled`")
    rows = embedder.embed(texts, kind="query" if query else "document")
    if json:
        print_json({"model": embedder.id, "dimensions": embedder.dimensions, "vectors": rows})
        return
    from rich.table import Table

    from homing.vectors import score_of

    cosines = rows @ rows.T
    table = Table(title=f"{embedder.id}: cosine (score) of each pair")
    table.add_column("")
    for position in range(len(texts)):
        table.add_column(str(position + 1), justify="right")
    for position, text in enumerate(texts):
        scores = (f"{cosine:.2f} ({score_of(float(cosine), embedder.scale):.2f})" for cosine in cosines[position])
        table.add_row(f"{position + 1} {text[:40]}", *scores)
    console().print(table)
