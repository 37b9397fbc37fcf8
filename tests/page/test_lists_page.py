"""Long lists: filtered, ordered and foldered as a whole, drawn where one looks, walked along with the keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import homing
from homing.config import EmbeddingSettings, Settings
from homing.server.application import create_app
from tests.effort import times
from tests.page.chromium import Held, becomes, visit
from tests.server.live import live

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DOCUMENTS = times(400, in_full=10_000)
SKILLS = times(120, in_full=5_000)
ROOMS, LAMPS = 60, times(900, in_full=5_000)
DRAWN = 60
"""Rows that may be there at once, however many there are."""


@pytest.fixture(scope="module")
def address(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("lists")
    for number in range(SKILLS):
        skill = folder / "skills" / f"team-{number % 3}" / f"skill-{number}"
        skill.mkdir(parents=True)
        head = f"---\nname: skill-{number}\ndescription: 整理第 {number} 份表格 tidy sheet {number}\n---\n"
        (skill / "SKILL.md").write_text(head, encoding="utf-8")
    with homing.open(folder / "data", settings=Settings(embedding=EmbeddingSettings(provider=""))) as app:
        app.skills.scan(folder / "skills")
        for number in range(DOCUMENTS):
            project = "journal" if number % 2 else "archive"
            app.documents.save(project, f"{2020 + number % 4}/note {number}", f"笔记 {number}")
        for number in range(SKILLS):
            app.memory.remember("knowledge" if number % 2 else "observation", f"记住第 {number} 件事")
        lamps = [
            {"id": f"lamp-{n}", "name": f"台灯{n}", "type": "light", "room": f"{n % ROOMS}号房"} for n in range(LAMPS)
        ]
        app.devices.replace({"rooms": [{"name": f"{number}号房"} for number in range(ROOMS)], "devices": lamps})
        with live(create_app(app)) as address:
            yield address


def rows(page: Page) -> list[str]:
    """The names that are drawn."""
    return page.locator(".rows strong").all_inner_texts()


def test_of_a_long_list_only_what_is_seen_is_there_and_all_of_it_can_be_reached(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/skills") as page:
        page.locator(".rows li").first.wait_for()
        assert page.locator(".rows li").count() < DRAWN
        assert f"{SKILLS:,}" in page.locator(".tools .count").inner_text()
        button = page.get_by_role("button", name="添加技能").bounding_box()
        assert button is not None
        assert button["y"] < 200
        page.keyboard.press("End")
        page.locator(".rows strong", has_text=f"skill-{SKILLS - 1}").wait_for()
        assert page.locator(".rows li").count() < DRAWN
        last = page.locator(".rows li").last
        assert last.get_attribute("aria-posinset") == last.get_attribute("aria-setsize") == str(SKILLS)


def test_a_filter_looks_at_everything_and_an_escape_takes_it_back(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/skills", language="en-US") as page:
        page.locator("[data-filter]").fill(f"表格 {SKILLS - 1}")
        becomes(page.locator(".rows li"), 1)
        assert rows(page) == [f"skill-{SKILLS - 1}"]
        assert page.locator(".tools .count").inner_text() == f"1 of {SKILLS:,}"
        page.locator("[data-filter]").press("Escape")
        page.locator(".rows strong", has_text="skill-1").first.wait_for()
        assert page.locator(".rows li").count() > 1


def test_documents_stand_in_folders_that_close(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/documents") as page:
        page.locator(".rows .folder").first.wait_for()
        first = page.locator(".folder button").first
        assert first.inner_text().split("\n")[0] == "archive / 2020"
        assert rows(page)[0] == "note 0"
        first.click()
        assert page.locator(".folder button").first.get_attribute("aria-expanded") == "false"
        assert page.locator(".folder button").nth(1).inner_text().startswith("archive / 2022")
        assert rows(page)[0] == "note 2"
        page.get_by_label("分组").select_option("none")
        page.get_by_label("排序", exact=True).select_option("updated")
        assert rows(page)[0] == f"note {DOCUMENTS - 1}"


def test_a_list_is_walked_along_with_the_keys_and_is_where_it_was_on_coming_back(
    browser: Browser, address: str
) -> None:
    with visit(browser, address, "#/documents", language="en-US") as page:
        page.locator(".rows a").first.wait_for()
        page.keyboard.press("/")
        for _ in range(40):
            page.keyboard.press("ArrowDown")
        there = page.evaluate("document.activeElement.dataset.stop")
        assert there == "archive/2020/note 148"
        before = page.evaluate("window.scrollY")
        assert before > 0
        page.keyboard.press("Enter")
        page.locator(".reading").wait_for()
        page.go_back()
        page.locator(".rows a").first.wait_for()
        assert page.evaluate("window.scrollY") == before
        page.keyboard.press("Home")
        page.locator(".rows .folder").first.wait_for()


def test_memories_are_listed_by_kind_and_open_as_a_whole(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/memory") as page:
        page.locator(".entries li").first.wait_for()
        assert page.locator(".entries .says").first.inner_text() == f"记住第 {SKILLS - 1} 件事"
        page.get_by_label("分组").select_option("kind")
        assert page.locator(".folder .name").first.inner_text() == "观察"
        page.get_by_label("排序", exact=True).select_option("oldest")
        assert page.locator(".entries .says").first.inner_text() == "记住第 0 件事"
        page.locator(".entries .says").first.click()
        assert "记住第 0 件事" in page.locator("#detail .prose").inner_text()
        page.keyboard.press("Escape")
        assert page.locator("#detail").is_hidden()


def test_a_list_that_comes_late_is_not_drawn_over_results(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/all") as page:
        held = Held(page, "**/skills?limit=1000*")
        page.goto(f"{address}/#/skills")
        listing = held.get()
        page.fill("#query", "表格")
        page.locator(".hit").first.wait_for()
        with page.expect_response("**/skills?limit=1000*"):
            listing.continue_()
        page.locator(".hit").first.click()
        page.locator("#detail:not([hidden])").wait_for()
        assert page.locator(".rows").count() == 0


def test_of_a_large_home_a_part_is_drawn_and_what_a_sentence_means(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/devices") as page:
        page.wait_for_selector(".floors")
        assert page.locator(".room").count() == 48
        assert page.locator(".device").count() == 48 * 12
        last = LAMPS - 1
        page.fill("#query", f"打开台灯{last}")
        page.wait_for_selector(f".device.meant[data-device='lamp-{last}']")
        room = page.locator(".room", has=page.locator(".device.meant"))
        assert f"另有 {LAMPS // ROOMS - 13} 个设备" in room.inner_text()
        page.fill("#query", "打开所有的灯")
        page.locator(".step > p", has_text=f"另有 {LAMPS - 24} 个设备").wait_for()
        assert page.locator(".device").count() < 60 * 14
