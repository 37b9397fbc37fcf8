"""What the marks beside a hit say, in the language of the page, and how keys and commands go with it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from homing.app import Homing
from homing.server.application import create_app
from tests.page.chromium import visit
from tests.server.live import live

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SENTENCES = {
    "zh-CN": re.compile(r"按意思排第 (\d+)(?:，按字面排第 (\d+))?.*?第 (\d+)。"),
    "en-US": re.compile(r"Ranked (\d+) by meaning(?: and (\d+) by words)?.*?(\d+) overall"),
}
LEGEND = {"zh-CN": "合并后的名次", "en-US": "rank here"}


@pytest.mark.parametrize("language", ["zh-CN", "en-US"])
def test_the_ranks_of_an_explanation_are_those_beside_the_hit(browser: Browser, address: str, language: str) -> None:
    with visit(browser, address, "#/documents?q=海鸟的论文", language=language) as page:
        page.wait_for_selector(".hit")
        assert LEGEND[language] in page.locator("dl.marks").inner_text()
        for place in range(page.locator(".hit").count()):
            hit = page.locator(".hit").nth(place)
            hit.click()
            said = SENTENCES[language].search(page.locator("#detail figcaption").inner_text())
            beside = {
                leg: "".join(hit.locator(f".leg.{leg}").evaluate_all("all => all.map(one => one.lastChild.data)"))
                for leg in ("vector", "keyword", "fused")
            }
            assert beside["fused"] == str(place + 1)
            if said is not None:
                assert [beside["vector"], beside["keyword"], beside["fused"]] == [one or "" for one in said.groups()]


def test_one_escape_clears_wherever_the_focus_is(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/all?q=海鸟") as page:
        page.locator(".hit").first.wait_for()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.dataset.hit")
        page.keyboard.press("Escape")
        page.locator(".welcome").wait_for()
        assert page.locator("#query").input_value() == ""
        page.keyboard.type("海鸟")
        page.locator(".hit").first.click()
        page.locator("#query").focus()
        page.keyboard.press("Escape")
        page.locator(".welcome").wait_for()
        assert page.locator("#detail").is_hidden()


def test_commands_name_the_folder_where_it_is_not_the_users_own(browser: Browser, app: Homing) -> None:
    with live(create_app(app)) as address, visit(browser, address, "#/skills", language="en-US") as page:
        page.locator(".command code", has_text=f"homing skills scan skills/ --data {app.settings.data}").wait_for()


def test_the_examples_speak_the_language_of_the_page(browser: Browser, app: Homing) -> None:
    with live(create_app(app)) as address, visit(browser, address, language="en-US") as page:
        page.locator("#examples").click()
        page.get_by_text("Examples added").wait_for()
        chips = page.locator("button.chip")
        chips.filter(has_text="turn on the lights except in the bedroom").wait_for()
        assert not re.search("[\u4e00-\u9fff]", " ".join(chips.all_inner_texts()))
        chips.filter(has_text="turn on the lights").click()
        page.locator(".of-devices .hit", has_text="Ceiling light").wait_for()
        page.click("#language")
        page.fill("#query", "")
        chips.filter(has_text="打开除卧室以外的灯").wait_for()
