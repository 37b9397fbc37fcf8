"""Search as people see it: live results, explanations, keys, languages, sizes."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.page.chromium import visit
from tests.page.contents import HOSTILE, HOSTILE_TEXT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = [pytest.mark.browser, pytest.mark.slow]

VIEWS = ("all", "skills", "documents", "memory", "devices", "map", "models", "health", "evaluation", "guide")


def first_hit(page: Page, source: str) -> str:
    return page.locator(f".of-{source} .hit .title").first.inner_text()


def test_results_come_while_typing(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        page.locator("#query").press_sequentially("帮我提交代码", delay=20)
        page.wait_for_selector(".of-skills .hit")
        assert "git-commit" in first_hit(page, "skills")
        assert page.url.endswith("?q=%E5%B8%AE%E6%88%91%E6%8F%90%E4%BA%A4%E4%BB%A3%E7%A0%81")
        assert re.search(r"\d+ 条结果", page.locator("#said").inner_text())


def test_letters_of_a_word_being_composed_are_no_question(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        asked: list[str] = []
        page.on("request", lambda one: asked.append(one.post_data or "") if one.url.endswith("/search") else None)
        compose = """text => {
            const box = document.getElementById("query");
            box.value = text;
            box.dispatchEvent(new InputEvent("input", {isComposing: true, bubbles: true}));
        }"""
        page.evaluate(compose, "deng")
        page.wait_for_timeout(300)
        assert asked == []
        page.evaluate("""() => {
            const box = document.getElementById("query");
            box.value = "灯塔";
            box.dispatchEvent(new CompositionEvent("compositionend", {bubbles: true}));
        }""")
        page.wait_for_selector(".of-documents .hit")
        assert len(asked) == 1


def test_an_answer_to_an_older_question_is_dropped(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:

        def late(route: Route) -> None:
            if "海鸟" in (route.request.post_data or ""):
                page.wait_for_timeout(700)
            route.continue_()

        page.route("**/search", late)
        page.fill("#query", "海鸟")
        page.wait_for_timeout(250)
        page.fill("#query", "花生过敏")
        page.wait_for_selector(".of-memory .hit")
        page.wait_for_timeout(900)
        assert "花生" in page.locator(".of-memory .hit").first.inner_text()
        assert page.locator("#query").input_value() == "花生过敏"
        assert page.locator(".results").inner_text().count("海鸟") == 0


def test_a_hit_explains_both_legs_with_ranks_and_marked_words(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/documents?q=海鸟的论文") as page:
        page.wait_for_selector(".hit")
        assert page.locator(".hit mark").first.inner_text() in "海鸟的论文"
        page.locator(".hit").first.click()
        detail = page.locator("#detail")
        assert "意思" in detail.inner_text()
        assert "字面" in detail.inner_text()
        assert detail.locator("svg.fusion .strand.strong").count() == 2
        assert "第 1" in detail.locator("figcaption").inner_text()
        assert re.search(r"余弦 0\.\d+", detail.inner_text())
        assert re.search(r"占 \d+ %", detail.inner_text())
        assert detail.locator(".passage mark").count() >= 1


def test_a_hit_that_only_meaning_found_says_so(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/documents?q=how often to change the spark plug", language="en-US") as page:
        page.locator(".hit").first.click()
        assert "no words matched" in page.locator("#detail figcaption").inner_text()
        assert page.locator("#detail svg.fusion .stub").count() == 1


def test_the_whole_way_by_keyboard(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        page.wait_for_selector(".welcome")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.keyboard.press("?")
        page.wait_for_selector("#keys-dialog[open]")
        page.keyboard.press("Escape")
        page.wait_for_selector("#keys-dialog", state="detached")
        page.keyboard.press("/")
        page.keyboard.type("海鸟")
        page.wait_for_selector(".of-documents .hit")
        page.keyboard.press("ArrowDown")
        first = page.evaluate("document.activeElement.dataset.hit")
        page.keyboard.press("ArrowDown")
        second = page.evaluate("document.activeElement.dataset.hit")
        assert first
        assert second
        assert first != second
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        page.wait_for_selector("#detail:not([hidden])")
        page.keyboard.press("Escape")
        assert page.locator("#detail").is_hidden()
        assert page.evaluate("document.activeElement.dataset.hit") == first
        page.keyboard.press("ArrowUp")
        assert page.evaluate("document.activeElement.id") == "query"
        page.keyboard.press("Escape")
        page.wait_for_selector(".welcome")
        page.keyboard.press("Escape")
        page.keyboard.press("5")
        page.wait_for_selector(".floors")


def test_the_interface_follows_the_browser_and_remembers_a_choice(browser: Browser, address: str) -> None:
    with visit(browser, address, language="en-GB") as page:
        assert page.locator("#rail").inner_text().startswith("Everything")
        page.click("#language")
        assert page.locator("#rail").inner_text().startswith("全部")
        assert page.evaluate("document.documentElement.lang") == "zh-CN"
        page.reload()
        assert page.locator("#rail").inner_text().startswith("全部")


def test_light_and_dark_follow_the_system_until_one_is_chosen(browser: Browser, address: str) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with visit(browser, address, scheme="dark") as page:
        dark = page.evaluate(ground)
        page.click("#theme")
        light = page.evaluate(ground)
        assert dark != light
        page.reload()
        assert page.evaluate(ground) == light


def test_nothing_is_wider_than_a_phone(browser: Browser, address: str) -> None:
    with visit(browser, address, phone=True) as page:
        for view in VIEWS:
            page.goto(f"{address}/#/{view}?q=打开除卧室以外的灯")
            page.wait_for_selector(f"main.view-{view} > div > :not(.loading)")
            page.wait_for_load_state("networkidle")
            assert page.evaluate("document.documentElement.scrollWidth") <= 375, view


def test_on_a_phone_an_explanation_is_a_sheet_that_closes(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/all?q=花生过敏", phone=True) as page:
        page.locator(".of-memory .hit").first.tap()
        box = page.locator("#detail").bounding_box()
        assert box is not None
        assert box["width"] == 375
        page.locator("#detail .close").tap()
        assert page.locator("#detail").is_hidden()


PLACES = """one => {
  const places = [], range = document.createRange(), walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode())
    for (let at = 0; at < node.length; at += 1) {
      range.setStart(node, at);
      range.setEnd(node, at + 1);
      places.push(range.getBoundingClientRect().left);
    }
  return places;
}"""


def test_a_device_is_told_in_the_language_of_the_page_with_its_name_in_one_piece(
    browser: Browser, address: str
) -> None:
    with visit(browser, address, "#/all?q=打开客厅的灯", phone=True) as page:
        hit = page.locator(".of-devices .hit", has_text="客厅主灯")
        assert hit.locator(".text").inner_text() == "turn_on · 房间对上 · 种类对上 · 能做这件事"
        assert hit.locator("mark").all_inner_texts() == ["客厅", "灯"]
        places = hit.locator(".title > span").first.evaluate(PLACES)
        steps = [after - before for before, after in pairwise(places)]
        assert max(steps) - min(steps) < 0.1
        hit.tap()
        assert "is a light" not in page.locator("#detail").inner_text()


def test_what_people_write_is_never_markup(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/all?q=有毒") as page:
        page.wait_for_selector(".of-skills .hit")
        assert HOSTILE in page.locator(".of-skills .hit").first.inner_text()
        page.locator(".of-documents .hit").first.click()
        assert "<script>" in page.locator("#detail").inner_text()
        page.locator("#detail a.button").click()
        page.wait_for_selector(".writing")
        page.wait_for_selector(".paragraphs .says")
        assert page.locator(".writing").input_value() == HOSTILE_TEXT
        for view in ("skills", "documents", "map"):
            page.goto(f"{address}/#/{view}")
            page.wait_for_selector(f".view-{view} > div > :not(.loading)")
            page.wait_for_timeout(300)
        page.fill("#query", HOSTILE)
        page.wait_for_timeout(600)
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main script").count() == 0


def test_the_browser_itself_refuses_markup_from_text(browser: Browser, address: str) -> None:
    with visit(browser, address, expected=("TrustedHTML", "Trusted Type")) as page:
        refused = page.evaluate("""() => {
            try { document.body.innerHTML = "<b>x</b>"; return "taken"; } catch (error) { return error.name; }
        }""")
        assert refused == "TypeError"


def test_a_place_can_be_bookmarked_and_gone_back_from(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/memory?q=billing", language="en-US") as page:
        page.wait_for_selector(".of-memory .hit")
        page.click("[data-view=skills]")
        page.wait_for_selector(".view-skills .hit, .view-skills .nothing")
        assert page.locator("#query").input_value() == "billing"
        page.go_back()
        page.wait_for_selector(".of-memory .hit")
