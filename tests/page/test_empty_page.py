"""A page over an empty folder teaches the next step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from homing.app import Homing
from homing.server.application import create_app
from tests.page.chromium import becomes, visit
from tests.server.live import live

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TAUGHT = {
    "skills": "homing skills scan",
    "documents": "homing documents add",
    "memory": "homing memory remember",
    "devices": "homing devices load",
    "evaluation": "homing eval",
}


@pytest.fixture(scope="module")
def address(app: Homing) -> Iterator[str]:
    with live(create_app(app)) as address:
        yield address


def test_every_empty_view_says_what_to_do_next(browser: Browser, address: str) -> None:
    with visit(browser, address, language="en-US") as page:
        for view, command in TAUGHT.items():
            page.goto(f"{address}/#/{view}")
            page.locator(f".view-{view} .empty").wait_for()
            assert command in page.locator(".empty .command").inner_text(), view
        page.goto(f"{address}/#/map")
        page.locator(".view-map .empty").wait_for()


def test_the_examples_are_put_in_and_found_at_once(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        page.locator("#examples").click()
        page.get_by_text("示例已放入").wait_for()
        page.locator(".sources .of-devices strong", has_text="7").wait_for()
        page.locator(".sources .of-skills strong", has_text="6").wait_for()
        page.locator("button.chip", has_text="打开除卧室以外的灯").click()
        page.wait_for_selector(".of-devices .hit")
        assert "客厅主灯" in page.locator(".group.of-devices").inner_text()
        page.fill("#query", "灯塔")
        page.wait_for_selector(".of-documents .hit mark")


def test_a_folder_of_skills_is_scanned_with_progress(
    browser: Browser, address: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("skills")
    (folder / "brew-tea").mkdir()
    (folder / "brew-tea" / "SKILL.md").write_text(
        "---\nname: brew-tea\ndescription: 泡茶 make tea\n---\nBoil water.\n", encoding="utf-8"
    )
    with visit(browser, address, "#/skills") as page:
        page.get_by_role("button", name="添加技能").click()
        page.get_by_label("这台机器上的目录").fill(str(folder))
        page.get_by_role("button", name="扫描").click()
        page.locator(".rows", has_text="brew-tea").wait_for()
        becomes(page.locator(".empty"), 0)
        page.locator(".rows a", has_text="brew-tea").click()
        page.locator(".prose", has_text="Boil water").wait_for()


def test_a_server_with_tokens_asks_for_one_and_then_works(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    import homing
    from homing.config import Settings
    from homing.server.tokens import Tokens

    with homing.open(tmp_path_factory.mktemp("tokens") / "data", settings=Settings()) as app:
        secret = Tokens(app.database).create("mei", "write").secret
        with (
            live(create_app(app, exposed=True)) as address,
            visit(browser, address, "#/memory", language="en-US", expected=("401", "403")) as page,
        ):
            page.get_by_role("textbox", name="Token").fill(secret)
            page.get_by_role("button", name="Use it").click()
            page.locator(".empty", has_text="Nothing remembered yet").wait_for()
            assert secret not in page.content()
