"""The files of the web page, read once and handed out by name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

INDEX = "index.html"
TYPES: Mapping[str, str] = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "md": "text/markdown; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file with the headers that belong to its content."""

    content: bytes
    media_type: str
    etag: str


def page_files() -> dict[str, PageFile]:
    """Every file of the page by its path below `/page/`, and the example data below `examples/`.

    Nothing outside this list can be asked for, whatever a path says.
    """
    package = files("homing")
    found = dict(_below(package / "server" / "page"))
    found.update(_below(package / "examples", "examples/"))
    return found


def _below(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, PageFile]]:
    for one in folder.iterdir():
        name = prefix + one.name
        media_type = TYPES.get(one.name.rpartition(".")[2])
        if one.is_dir():
            yield from _below(one, name + "/")
        elif media_type is not None:
            content = one.read_bytes()
            yield name, PageFile(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:16]}"')
