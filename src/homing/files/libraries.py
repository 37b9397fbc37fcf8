"""The libraries that read files, imported when the first file of their kind is."""

from __future__ import annotations

import importlib
from typing import Any

from homing.errors import MissingExtra


def library(name: str) -> Any:
    """A module by its name. Raises MissingExtra where it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"{name.partition('.')[0]} is not installed; install it with: pip install 'homing[files]'",
            details={"extra": "files"},
        ) from error
