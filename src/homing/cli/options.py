"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print plain JSON for programs.")]
Data = Annotated[Path | None, typer.Option("--data", help="The data folder.", file_okay=False)]
