"""Names of a package that are imported when they are first used: who needs one of them does not load the others."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def names_from(package: str, **modules: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package: of each of its modules, the names that are the package's own, between spaces."""
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return find
