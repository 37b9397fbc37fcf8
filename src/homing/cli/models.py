"""`homing models` and `homing providers`: which models there are, whose they are, and the change from one to another.

A key is never taken from the command line, and never shown.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.calls import Answer, answers, checked, group, nothing, required
from homing.cli.language import text
from homing.cli.lazy import models_in_use, reports
from homing.cli.output import note, print_table, progress, say
from homing.errors import NotFound, hide_passwords

if TYPE_CHECKING:
    from homing.app import Homing
    from homing.cli.reports import ProviderOut
    from homing.models import LLMProvider
    from homing.operations import Call
    from homing.operations.models_in_use import ModelChange

app = group("models", "Embedding models: list, add, test and change them.")
providers = group("providers", "Accounts with model providers.")

NO_PROVIDERS = "no providers yet; add one with: homing providers add NAME --type openai"

Name = Annotated[str, typer.Argument(help="The name of the model, e.g. text-embedding-3-small.")]
Provider = Annotated[
    str | None, typer.Option("--provider", help="The name of its provider, where several have the model.")
]

PROBES = ("打开卧室的灯", "turn on the bedroom light", "昨天的会议纪要")
"""Two texts that mean the same, and one that does not."""
LOG = "switch.log"


@app.command(name="list")
@answers("list_models")
def list_models(call: Call) -> Answer:
    """List the models, and show which one is in use."""
    found = models_in_use.list_models(call, nothing())
    rows = [
        (one.name, one.provider, one.dimensions or "", "✓" if one.default else "" if one.enabled else text("off"))
        for one in found.models
    ]
    return Answer(found, lambda: print_table(("model", "provider", "dimensions", "in use"), rows))


@app.command()
@answers("homing.cli.reports:ModelAdded")
def add(
    call: Call,
    name: Name,
    provider: Annotated[str, typer.Option("--provider", help="The name of its provider; see `homing providers`.")],
    dimensions: Annotated[
        int | None, typer.Option(help="The length of its vectors, where the model has several.")
    ] = None,
    endpoint: Annotated[str, typer.Option(help="The path of the API below the provider's address.")] = "",
    timeout: Annotated[int | None, typer.Option(help="How long a request may take, in milliseconds.")] = None,
    path: Annotated[str, typer.Option(help="The folder of a model that runs on this machine.")] = "",
) -> Answer:
    """Add a model of a provider. Use it with `homing models default NAME`."""
    models = call.app.models
    # The model that is used now stays in use.
    models.config.ensure_default_embedding_model()
    kind = models.config.get_provider(provider).type
    given = {"apiEndpoint": endpoint, "dimensions": dimensions, "timeout": timeout, "modelPath": path}
    model = models.config.create_model(
        provider, name, model_config={"local": kind == "local"} | {key: one for key, one in given.items() if one}
    )
    try:
        added = reports.ModelAdded(name=name, provider=provider, model=models.adapter(model).id)
    except Exception:
        models.config.delete_model(model.id)
        raise
    return Answer(added, lambda: say("added {one.model}; try it with `homing models test {one.name}`", one=added))


@app.command()
@answers("homing.cli.reports:ModelRemoved")
def remove(call: Call, name: Name, provider: Provider = None) -> Answer:
    """Remove a model that was added.

    Texts that it embedded stay, and are found by their words until another model has embedded them.
    """
    found = call.app.models.manager.model_registry.find_model(provider, name)
    call.app.models.config.delete_model(found.model.id)
    gone = reports.ModelRemoved(name=name, provider=found.provider.name)
    return Answer(gone, lambda: say("removed {one.name} of {one.provider}", one=gone))


@app.command(name="test")
@answers("homing.cli.reports:ModelTested")
def try_out(
    call: Call,
    name: Annotated[str | None, typer.Argument(help="The name of the model; without it, the one in use.")] = None,
    provider: Provider = None,
) -> Answer:
    """Try out a model. Shows how fast it is, and how it scores three texts."""
    from homing.vectors import score_of

    models = call.app.models
    named = None if name is None else models.manager.get_or_create_adapter(models.find(name, provider))
    chosen = named or required(call.app.embedder)
    rows = chosen.embed(PROBES)
    started = time.perf_counter()
    # A text that no cache holds.
    chosen.embed([f"homing {time.time_ns()}"], kind="query")
    tested = reports.ModelTested(
        model=chosen.id,
        dimensions=chosen.dimensions,
        milliseconds=round((time.perf_counter() - started) * 1000, 1),
        related=round(score_of(float(rows[0] @ rows[1]), chosen.scale), 3),
        unrelated=round(score_of(float(rows[0] @ rows[2]), chosen.scale), 3),
    )
    message = (
        "{one.model}: {one.milliseconds:.0f} ms for a text; “{probes[0]}” scores {one.related:.2f} with "
        "“{probes[1]}” and {one.unrelated:.2f} with “{probes[2]}”"
    )
    return Answer(tested, lambda: say(message, one=tested, probes=PROBES))


@app.command()
@answers("homing.cli.reports:ModelPulled")
def pull(name: Annotated[str, typer.Argument(help="The name of the model, e.g. all-MiniLM-L6-v2.")]) -> Answer:
    """Download a model that runs on this machine. Torch is not needed."""
    from homing.config import load
    from homing.embedders.pull import pull as fetch

    folder = load().settings.models.expanduser() / name
    with progress("Downloading {name}", name=name) as step:
        fetch(name, folder, progress=lambda one: step(one.done, one.total or one.done))
    pulled = reports.ModelPulled(name=name, path=str(folder))
    message = "{one.name} is ready in {one.path}; use it with `homing models default {one.name}`"
    return Answer(pulled, lambda: say(message, one=pulled))


@app.command()
@answers("homing.models.calibrate:Calibrated")
def calibrate(
    call: Call,
    name: Name,
    corpus: Annotated[
        Path | None, typer.Option("--corpus", help="Fit it to the .md and .txt files of this folder.", file_okay=False)
    ] = None,
    provider: Provider = None,
) -> Answer:
    """Calibrate the scores of a model.

    After that, a score is the probability that a hit is about the question, and answers that are unlikely to be right
    are left out.
    """
    from homing.models.calibrate import calibrate as fit
    from homing.models.calibrate import keep_scale, pairs_of, shipped_pairs

    pairs = shipped_pairs() if corpus is None else pairs_of(_texts(corpus))
    found = call.app.models.find(name, provider)
    fitted = fit(call.app.models.adapter(found.model), pairs)
    keep_scale(call.app.models.config, found.model, fitted.scale)
    message = (
        "{name}: border {fit.scale.border:.3f}, steepness {fit.scale.steepness:.1f}, fitted to {fit.pairs} pairs; "
        "{fit.related_above:.0%} of the related pairs score above 0.5, {fit.unrelated_below:.0%} of the unrelated ones "
        "below"
    )
    return Answer(fitted, lambda: say(message, name=name, fit=fitted))


def _texts(folder: Path) -> list[str]:
    from homing.documents.folders import read_text, text_files
    from homing.text.decoding import NotText

    if not folder.is_dir():
        raise NotFound(text("there is no folder {folder}; name a folder with .md or .txt files", folder=folder))
    texts = []
    for path in text_files(folder):
        try:
            texts.append(read_text(path))
        except (NotText, OSError) as error:
            note("skipped {path}: {reason}", path=path, reason=error)
    return texts


@app.command(name="default")
@answers("get_model_change")
def change_default(
    call: Call,
    name: Annotated[
        str | None, typer.Argument(help="The model to use; without it, an unfinished change is completed.")
    ] = None,
    provider: Provider = None,
    background: Annotated[
        bool, typer.Option("--background", help="Return at once and embed in the background.")
    ] = False,
) -> Answer:
    """Choose the model to use from now on.

    Texts that another model embedded are embedded again, while searches go on. If it is interrupted, the same command
    continues where it stopped.
    """
    if name is not None:
        models_in_use.make_default(call, checked(models_in_use.ModelChoice, name=name, provider=provider))
    _start_apart(call.app) if background else _embed_again(call.app)
    return _change(call)


@app.command()
@answers("get_model_change")
def status(call: Call) -> Answer:
    """Show the model in use, and the progress of a change."""
    return _change(call)


@app.command()
@answers("get_model_change")
def rollback(call: Call) -> Answer:
    """Go back to the previous model. Its vectors were kept."""
    call.app.switch.rollback()
    # What was written since the change has no vector of that model yet.
    _embed_again(call.app)
    return _change(call)


@app.command()
@answers("homing.cli.reports:VectorsDiscarded")
def discard(call: Call) -> Answer:
    """Delete the vectors that were kept for a rollback."""
    done = reports.VectorsDiscarded(discarded=call.app.switch.discard())
    return Answer(done, lambda: say("{count:#vector} deleted", count=done.discarded))


def _embed_again(app: Homing) -> None:
    with progress("Embedding again") as step:
        app.switch.run(step)


def _start_apart(app: Homing) -> None:
    command = [sys.executable, "-c", "from homing.cli.main import run; run()", "models", "default", "--json"]
    with (app.settings.data / LOG).open("ab") as log:
        subprocess.Popen(
            [*command, "--data", str(app.settings.data.absolute())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _change(call: Call) -> Answer:
    change = models_in_use.get_model_change(call, nothing())
    return Answer(change, lambda: _show_change(change))


def _show_change(change: ModelChange) -> None:
    say("model in use: {name}", name=change.default or text("none (keywords only)"))
    if change.target and not change.finished:
        if change.running:
            say("changing to {one.target}: {one.done} of {one.total}", one=change)
            if change.seconds_left is not None:
                say("about {seconds:.0f} s left", seconds=change.seconds_left)
        else:
            say("changing to {one.target}: stopped; finish it with `homing models default`", one=change)
        if change.error:
            say("{error}", error=change.error)
    rows = []
    for one in change.collections:
        served = next((other.model for other in one.models if other.served), "")
        held = ", ".join(f"{other.model} ({other.embedded})" for other in one.models if not other.served)
        rows.append((one.collection, one.records, served, held))
    if rows:
        print_table(("collection", "texts", "searched with", "also has vectors of"), rows)


@providers.command(name="list")
@answers("homing.cli.reports:ProviderOut[]")
def list_providers(call: Call) -> Answer:
    """List the providers. Keys are not shown.

    The list says whether there is a key, or which environment variable holds it.
    """
    found = [_provider_out(one) for one in call.app.models.providers()]
    rows = [
        (one.name, one.type, one.base_url, text("set") if one.key == "set" else one.key, "✓" if one.enabled else "")
        for one in found
    ]
    headings = ("name", "type", "address", "key", "enabled")
    return Answer(found, lambda: print_table(headings, rows, empty=NO_PROVIDERS))


@providers.command(name="add")
@answers("homing.cli.reports:ProviderOut")
def add_provider(
    call: Call,
    name: Annotated[str, typer.Argument(help="A name of your choice.")],
    kind: Annotated[str, typer.Option("--type", help="openai, gemini, ollama, dashscope, local and others.")],
    base_url: Annotated[str, typer.Option(help="The address of the API, if it is not the usual one.")] = "",
    key_variable: Annotated[
        str, typer.Option("--key-variable", help="Read the key from this environment variable whenever it is used.")
    ] = "",
    no_key: Annotated[bool, typer.Option("--no-key", help="The provider needs no key.")] = False,
) -> Answer:
    """Add a provider. It asks for the key, or reads it from standard input.

    Instead of a key, ${VARIABLE} may be entered: the key is then read from that environment variable.
    """
    from homing.models.records import PROVIDER_TYPES

    asks = not no_key and kind in set(PROVIDER_TYPES) - {"local", "ollama"}
    key = f"${{{key_variable}}}" if key_variable else _ask_key(name) if asks else ""
    added = _provider_out(call.app.models.config.create_provider(name, kind, api_key=key, base_url=base_url))
    hint = "added {name}; add one of its models with `homing models add MODEL --provider {name}`"
    return Answer(added, lambda: say(hint, name=name))


@providers.command(name="remove")
@answers("homing.cli.reports:ProviderOut")
def remove_provider(call: Call, name: Annotated[str, typer.Argument(help="The name of the provider.")]) -> Answer:
    """Remove a provider that has no models."""
    config = call.app.models.config
    gone = _provider_out(config.get_provider(name))
    config.delete_provider(name)
    return Answer(gone, lambda: say("removed {name}", name=name))


def _ask_key(name: str) -> str:
    if sys.stdin.isatty():
        asked = text("API key of {name}", name=name)
        key: str = typer.prompt(asked, hide_input=True, default="", show_default=False, err=True)
        return key
    return sys.stdin.readline().strip()


def _provider_out(provider: LLMProvider) -> ProviderOut:
    key = provider.api_key.reveal()
    refers = key.startswith("${") and key.endswith("}") and not key.startswith("${file:")
    base_url = hide_passwords(provider.base_url)
    return reports.ProviderOut.of(provider, key=key if refers or not key else "set", base_url=base_url)


@providers.command(name="key")
@answers("homing.cli.reports:ProviderOut")
def set_key(call: Call, name: Annotated[str, typer.Argument(help="The name of the provider.")]) -> Answer:
    """Set the key of a provider.

    It asks for the key, or reads it from standard input. Instead of a key, ${VARIABLE} may be entered.
    """
    config = call.app.models.config
    config.get_provider(name)
    changed = _provider_out(config.update_provider(name, api_key=_ask_key(name)))
    return Answer(changed, lambda: say("{name} has a new key", name=name))
