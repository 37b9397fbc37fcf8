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
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file with the headers that belong to its content."""

    content: bytes
    media_type: str
    etag: str


def page_files() -> dict[str, PageFile]:
    """Every file of the page by its path below `/page/`, and the example home as `examples/home.json`.

    Nothing outside this list can be asked for, whatever a path says.
    """
    package = files("homing")
    found = dict(_below(package / "server" / "page"))
    found["examples/home.json"] = _read(package / "examples" / "home.json")
    return found


def _below(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, PageFile]]:
    for one in folder.iterdir():
        name = prefix + one.name
        if one.is_dir():
            yield from _below(one, name + "/")
        elif _kind(one) in TYPES:
            yield name, _read(one)


def _read(file: Traversable) -> PageFile:
    content = file.read_bytes()
    return PageFile(content, TYPES[_kind(file)], f'"{hashlib.sha256(content).hexdigest()[:16]}"')


def _kind(file: Traversable) -> str:
    return file.name.rpartition(".")[2]
