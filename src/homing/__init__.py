"""One retrieval engine for agents and apps, bilingual (Chinese and English) and offline by default.

    import homing

    app = homing.open()
    app.add({"a": "生成Git提交信息", "b": "Read a file"})
    for hit in app.search("帮我提交代码"):
        print(hit.id, hit.score)

Names are imported when they are first used, so that `import homing` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from homing.lazy import names_from

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

_find = names_from(
    __name__,
    app="Homing open_app",
    config="Settings",
    errors="HomingError",
    records="Hit Match Retrieved VectorRecord",
    **{"engine.search": "HybridOptions search", "stores.registry": "open_store", "stores.store": "SearchOptions Store"},
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        # Reading it takes a millisecond, and every look at /health asks for it.
        return globals().setdefault(name, version("homing"))
    return _find("open_app" if name == "open" else name)


def __dir__() -> list[str]:
    return sorted(__all__)
