"""The web page: `/`, and its files below `/page/`.

The files hold no data of anybody and are open to everyone; what the page shows it asks of the API like any client.
"""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter, Request, Response

from homing.server.page_files import INDEX, PageFile, page_files

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


router = APIRouter(include_in_schema=False)


@router.get("/")
def page(request: Request) -> Response:
    """The page itself."""
    return _sent(_files()[INDEX], request)


@router.get("/favicon.ico")
def icon(request: Request) -> Response:
    """What browsers ask for without being told to."""
    return _sent(_files()["icon.svg"], request)


@router.get("/page/{name:path}")
def page_file(name: str, request: Request) -> Response:
    """One of the files that the page is made of."""
    found = _files().get(name)
    return Response(status_code=404, headers=HEADERS) if found is None else _sent(found, request)


@cache
def _files() -> dict[str, PageFile]:
    return page_files()


def _sent(file: PageFile, request: Request) -> Response:
    headers = {**HEADERS, "etag": file.etag}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)
