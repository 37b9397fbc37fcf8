"""The guide: the pages of docs/, which come with the package."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from homing.errors import NotFound

INDEX = "README"
"""The page that leads to all others."""


def guide_files() -> Iterator[tuple[str, Traversable]]:
    """The pages and pictures of the guide, by their paths in it."""
    folder = files("homing") / "docs"
    if not folder.is_dir():
        # In a checkout they are beside the sources.
        folder = Path(__file__).parents[2] / "docs"
    for one in folder.iterdir():
        if one.is_dir():
            yield from ((f"{one.name}/{below.name}", below) for below in one.iterdir())
        else:
            yield one.name, one


def page_names() -> list[str]:
    """The pages, by the names that `page` takes."""
    return sorted(path.removesuffix(".md") for path, _ in guide_files() if path.endswith(".md"))


def page(name: str) -> str:
    """A page as Markdown. Raises NotFound with the pages that there are."""
    known = dict(guide_files())
    if f"{name}.md" not in known:
        raise NotFound(
            f"the guide has no page {name!r}; it has: {', '.join(page_names())}; "
            "your own documents are with `homing documents`"
        )
    return known[f"{name}.md"].read_text(encoding="utf-8")
