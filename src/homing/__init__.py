"""One retrieval engine for agents and apps, bilingual (Chinese and English) and offline by default.

    import homing

    app = homing.open()
    app.add({"a": "生成Git提交信息", "b": "Read a file"})
    for hit in app.search("帮我提交代码"):
        print(hit.id, hit.score)

Names are imported when they are first used, so that `import homing` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from homing.app import Homing
    from homing.app import open_app as open  # noqa: A004
    from homing.config import Settings
    from homing.engine.search import HybridOptions, search
    from homing.errors import HomingError
    from homing.records import Hit, Match, Retrieved, VectorRecord
    from homing.stores.registry import open_store
    from homing.stores.store import SearchOptions, Store

__all__ = [
    "Hit",
    "Homing",
    "HomingError",
    "HybridOptions",
    "Match",
    "Retrieved",
    "SearchOptions",
    "Settings",
    "Store",
    "VectorRecord",
    "__version__",
    "open",
    "open_store",
    "search",
]

_HOMES = {
    "Hit": "records",
    "Homing": "app",
    "HomingError": "errors",
    "HybridOptions": "engine.search",
    "Match": "records",
    "Retrieved": "records",
    "SearchOptions": "stores.store",
    "Settings": "config",
    "Store": "stores.store",
    "VectorRecord": "records",
    "open": "app",
    "open_store": "stores.registry",
    "search": "engine.search",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        # Reading it takes a millisecond, and every look at /health asks for it.
        return globals().setdefault(name, version("homing"))
    if name not in _HOMES:
        raise AttributeError(f"module 'homing' has no attribute {name!r}")
    return getattr(import_module(f"homing.{_HOMES[name]}"), "open_app" if name == "open" else name)


def __dir__() -> list[str]:
    return sorted(__all__)
