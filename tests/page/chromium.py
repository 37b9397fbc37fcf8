"""A real browser, and pages in it that notice what must not happen."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import pytest

from tests.effort import SOAK

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page, Route

SCREENSHOTS = Path(os.environ.get("HOMING_SCREENSHOTS") or Path(__file__).parent / "screenshots")
"""Where a picture is kept of what each test saw last."""
PICTURES = SOAK or "HOMING_SCREENSHOTS" in os.environ
DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 375, "height": 812}
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # One renderer for all pages, which draws without helpers: starting them costs more than the pages do.
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process",
    "--in-process-gpu",
    "--disable-partial-raster",
    "--num-raster-threads=1",
    "--js-flags=--no-opt --max-lazy",
]
_CONTEXTS: WeakKeyDictionary[Browser, list[tuple[dict[str, Any], BrowserContext]]] = WeakKeyDictionary()


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser; the test is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium on this machine; install the package chromium to test the page")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=found, args=ARGUMENTS)
        loop = asyncio._get_running_loop()
        yield browser
        # Tests of other parts do without it (conftest.py).
        asyncio._set_running_loop(loop)
        browser.close()


@contextmanager
def visit(
    browser: Browser,
    address: str,
    place: str = "",
    *,
    language: str = "zh-CN",
    scheme: str = "light",
    phone: bool = False,
    expected: tuple[str, ...] = (),
) -> Iterator[Page]:
    """A page at a place (`#/skills`) that fails the test when it logs an error or asks anybody but its own server.

    `expected` are parts of messages that belong to the test.
    """
    said: list[str] = []
    asked: list[str] = []
    options: dict[str, Any] = {"locale": language, "color_scheme": scheme, "viewport": PHONE if phone else DESKTOP}
    if phone:
        options |= {"has_touch": True, "is_mobile": True}
    page = _context(browser, options).new_page()
    page.on("console", lambda one: said.append(one.text) if one.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda one: asked.append(one.url))
    page.goto(f"{address}/{place}")
    try:
        yield page
        if PICTURES:
            keep(page)
    except BaseException:
        keep(page)
        raise
    finally:
        # The next visitor has been here never.
        page.evaluate("localStorage.clear()")
        page.close()
    assert [one for one in said if not any(part in one for part in expected)] == []
    own = urlsplit(address).netloc
    assert {urlsplit(url).netloc for url in asked if not url.startswith(("data:", "blob:"))} == {own}


def _context(browser: Browser, options: dict[str, Any]) -> BrowserContext:
    """Where pages of one kind are opened; a page that stays keeps what they share alive."""
    for known, context in _CONTEXTS.setdefault(browser, []):
        if known == options:
            return context
    context = browser.new_context(**options)
    context.set_default_timeout(60_000)
    context.new_page()
    _CONTEXTS[browser].append((options, context))
    return context


def becomes(locator: Locator, count: int) -> None:
    """Waits until so many elements are there."""
    from playwright.sync_api import expect

    expect(locator).to_have_count(count, timeout=60_000)


class Held:
    """Requests of a page that wait until the test lets them go on."""

    def __init__(self, page: Page, pattern: str) -> None:
        self.waiting: list[Route] = []
        self._page = page
        page.route(pattern, lambda route: self.waiting.append(route))

    def get(self) -> Route:
        """The next one, as soon as it is asked."""
        while not self.waiting:
            self._page.wait_for_timeout(20)
        return self.waiting.pop(0)


def keep(page: Page, what: str = "") -> None:
    """Keep a picture of what the test that runs now sees."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    name = os.environ.get("PYTEST_CURRENT_TEST", "page").split("::")[-1].split(" ")[0] + what
    page.screenshot(path=str(SCREENSHOTS / f"{''.join(c if c.isalnum() else '_' for c in name)}.png"))
