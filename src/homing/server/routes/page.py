"""The web page: `/`, its files below `/page/`, and `/docs`, which leads to the guide and the description of the API.

The files hold no data of anybody and are open to everyone; what the page shows it asks of the API like any client.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request, Response

from homing.guide import guide_files

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # No text can become markup: the browser itself refuses innerHTML and its relatives.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    # Asked for again each time, and answered "not modified": an upgraded server never meets an old script.
    "cache-control": "no-cache",
}
INDEX = "index.html"
TYPES: Mapping[str, str] = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "webp": "image/webp",
    "md": "text/markdown; charset=utf-8",
}

router = APIRouter(include_in_schema=False)


@router.get("/")
def page(request: Request) -> Response:
    """The page itself."""
    return _sent(page_files()[INDEX], request)


@router.get("/favicon.ico")
def icon(request: Request) -> Response:
    """What browsers ask for without being told to."""
    return _sent(page_files()["icon.svg"], request)


@router.get("/docs")
def docs() -> Response:
    """The guide, which the page shows."""
    return Response(status_code=307, headers={**HEADERS, "location": "/#/guide"})


@router.get("/page/{name:path}")
def page_file(name: str, request: Request) -> Response:
    """One of the files that the page is made of."""
    found = page_files().get(name)
    return Response(status_code=404, headers=HEADERS) if found is None else _sent(found, request)


def _sent(file: PageFile, request: Request) -> Response:
    headers = {**HEADERS, "etag": file.etag}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file with the headers that belong to its content."""

    content: bytes
    media_type: str
    etag: str


@cache
def page_files() -> dict[str, PageFile]:
    """Every file of the page by its path below `/page/`, the example homes below `examples/`, the guide below `guide/`.

    Nothing outside this list can be asked for, whatever a path says.
    """
    package = files("homing")
    found = dict(_below(package / "server" / "page"))
    found |= {f"examples/{name}": _read(package / "examples" / name) for name in ("home.json", "home.en.json")}
    found |= {f"guide/{name}": _read(file) for name, file in guide_files() if _kind(file) in TYPES}
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
