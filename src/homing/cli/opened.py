"""The app of a data folder, as commands open it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from homing.app import Homing


def opened(data: Path | None) -> Homing:
    """The app of a data folder, or of the one that is set; use it in a `with` block."""
    from homing.app import open_app
    from homing.config import load

    settings = load().settings
    return open_app(data or settings.data, settings=settings)
