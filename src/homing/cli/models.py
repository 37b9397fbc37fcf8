"""`homing models`: which embedding models there are, and how well they answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.cli.opened import opened
from homing.cli.options import Data, Json
from homing.cli.output import console, print_json, progress

if TYPE_CHECKING:
    from homing.app import Homing

app = typer.Typer(help="Embedding models: which there are, which one is used.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the model, e.g. text-embedding-3-small.")]
Provider = Annotated[str | None, typer.Option("--provider", help="Name of the provider, where several have it.")]

PROBES = ("打开卧室的灯", "turn on the bedroom light", "昨天的会议纪要")
"""Two texts that mean the same, and one that does not."""


@app.callback()
def group() -> None:
    """Embedding models: which there are, which one is used."""


@app.command(name="list")
def list_models(data: Data = None, json: Json = False) -> None:
    """Show the models, and which one is used."""
    with opened(data) as app:
        rows = _rows(app)
    if json:
        print_json(rows)
        return
    from rich.table import Table

    table = Table("model", "provider", "dimensions", "in use", "where")
    for row in rows:
        used = "✓" if row["default"] else "" if row["enabled"] else "off"
        table.add_row(row["name"], row["provider"], str(row["dimensions"] or ""), used, str(row["path"]))
    console().print(table)


def _rows(app: Homing) -> list[dict[str, Any]]:
    from homing.resolve import local_models

    used = app.models.identity()
    rows = [
        {
            "name": one.name,
            "provider": "local",
            "dimensions": one.dimensions,
            "default": used == f"local/{one.name}@{one.dimensions}",
            "enabled": True,
            "path": str(one.path),
        }
        for one in local_models(app.settings)
    ]
    here = {row["name"] for row in rows}
    default = app.models.default_model()
    for one in app.models.configured():
        provider = app.models.config.get_provider(one.provider_id)
        if provider.type == "local" and one.model_key in here and not one.model_config.model_path:
            continue
        rows.append(
            {
                "name": one.model_key,
                "provider": provider.name,
                "dimensions": one.model_config.dimensions,
                "default": not app.models.explicit and one == default,
                "enabled": one.enabled and provider.enabled,
                "path": one.model_config.model_path or provider.base_url,
            }
        )
    return rows


@app.command()
def add(
    name: Name,
    provider: Annotated[str, typer.Option("--provider", help="Name of the provider; see `homing providers`.")],
    dimensions: Annotated[
        int | None, typer.Option(help="Width of its vectors, where the model lets one choose.")
    ] = None,
    endpoint: Annotated[str, typer.Option(help="Path below the provider's address, where it is not its own.")] = "",
    timeout: Annotated[int | None, typer.Option(help="Milliseconds for a request.")] = None,
    path: Annotated[str, typer.Option(help="Folder of a model that runs on this machine.")] = "",
    data: Data = None,
    json: Json = False,
) -> None:
    """Add a model of a provider. `homing models default NAME` then uses it."""
    with opened(data) as app:
        # The model that is used now stays in use.
        app.models.config.ensure_default_embedding_model()
        kind = app.models.config.get_provider(provider).type
        given = {"apiEndpoint": endpoint, "dimensions": dimensions, "timeout": timeout, "modelPath": path}
        model = app.models.config.create_model(
            provider, name, model_config={"local": kind == "local"} | {key: one for key, one in given.items() if one}
        )
        try:
            identity = app.models.adapter(model).id
        except Exception:
            app.models.config.delete_model(model.id)
            raise
    if json:
        print_json({"name": name, "provider": provider, "model": identity})
    else:
        console().print(f"{identity} was added; try it with `homing models test {name}`")


@app.command()
def remove(name: Name, provider: Provider = None, data: Data = None, json: Json = False) -> None:
    """Remove a model that was added. What it embedded stays, and is found by keywords until it is embedded again."""
    with opened(data) as app:
        found = app.models.manager.model_registry.find_model(provider, name)
        app.models.config.delete_model(found.model.id)
    if json:
        print_json({"name": name, "provider": found.provider.name})
    else:
        console().print(f"{name} of {found.provider.name} was removed")


@app.command(name="test")
def try_out(
    name: Annotated[str | None, typer.Argument(help="Name of the model; without one, the one in use.")] = None,
    provider: Provider = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Try a model out. Embeds three texts: how long that takes, and how near they are."""
    from homing.embedders.provider import EmbeddingProvider
    from homing.errors import ModelNotReady
    from homing.vectors import score_of

    with opened(data) as app:
        chosen: EmbeddingProvider | None
        if name is None:
            chosen = app.embedder
        else:
            chosen = app.models.manager.get_or_create_adapter(app.models.find(name, provider))
        if chosen is None:
            raise ModelNotReady("no embedding model is configured; set embedding.provider to `bundled`")
        rows = chosen.embed(PROBES)
        started = time.perf_counter()
        # A text that no cache holds.
        chosen.embed([f"homing {time.time_ns()}"], kind="query")
        milliseconds = (time.perf_counter() - started) * 1000
        related, unrelated = float(rows[0] @ rows[1]), float(rows[0] @ rows[2])
        told = {
            "model": chosen.id,
            "dimensions": chosen.dimensions,
            "milliseconds": round(milliseconds, 1),
            "related": round(score_of(related, chosen.scale), 3),
            "unrelated": round(score_of(unrelated, chosen.scale), 3),
        }
    if json:
        print_json(told)
        return
    console().print(
        f"{told['model']}: a text takes {milliseconds:.0f} ms; "
        f"“{PROBES[0]}” is {told['related']:.2f} to “{PROBES[1]}”, {told['unrelated']:.2f} to “{PROBES[2]}”"
    )


@app.command()
def pull(name: Name, json: Json = False) -> None:
    """Fetch a model by name, ready to run without torch. `homing models default NAME` then uses it."""
    from homing.config import load
    from homing.embedders.pull import pull as fetch

    folder = load().settings.models.expanduser() / name
    with progress(f"Fetching {name}", quiet=json) as step:
        fetch(name, folder, progress=lambda one: step(one.done, one.total or one.done))
    if json:
        print_json({"name": name, "path": folder})
    else:
        console().print(f"{name} is ready in {folder}; use it with `homing models default {name}`")
