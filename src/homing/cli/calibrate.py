"""`homing models calibrate`: fit the scale on which a model's cosines read as scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homing.cli.models import Name, Provider
from homing.cli.opened import opened
from homing.cli.options import Data, Json
from homing.cli.output import console, print_json


def calibrate_model(
    name: Name,
    corpus: Annotated[
        Path | None, typer.Option("--corpus", help="Fit on the .md and .txt files of this folder.", file_okay=False)
    ] = None,
    provider: Provider = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Fit the scale of a model. A score of 0.5 is then its own border between related and unrelated."""
    from homing.models.calibrate import calibrate, keep_scale, pairs_of, shipped_pairs

    pairs = shipped_pairs() if corpus is None else pairs_of(_texts(corpus))
    with opened(data) as app:
        found = app.models.find(name, provider)
        fitted = calibrate(app.models.adapter(found.model), pairs)
        keep_scale(app.models.config, found.model, fitted.scale)
    if json:
        print_json(fitted)
        return
    console().print(
        f"{name}: border {fitted.scale.border:.3f}, steepness {fitted.scale.steepness:.1f}, from {fitted.pairs} pairs; "
        f"{fitted.related_above:.0%} of the related score above 0.5, {fitted.unrelated_below:.0%} of the others below"
    )


def _texts(folder: Path) -> list[str]:
    from homing.documents.folders import read_text, text_files
    from homing.errors import NotFound
    from homing.text.decoding import NotText

    if not folder.is_dir():
        raise NotFound(f"there is no folder {folder}; name a folder with .md or .txt files")
    texts = []
    for path in text_files(folder):
        try:
            texts.append(read_text(path))
        except (NotText, OSError) as error:
            console(stderr=True).print(f"skipped {path}: {error}")
    return texts
