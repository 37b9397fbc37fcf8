"""The model as people see it: changed while everything goes on, gone with a notice, back without one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from homing.app import Homing
from homing.server.application import create_app
from homing.testing.loopback import Fault, LoopbackApi
from tests.page.chromium import becomes, visit
from tests.server.live import live

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]

KEY = "sk-page"
MODEL = "text-embedding-3-small"


@dataclass
class Provider:
    """A provider that can be stopped and started again at its address."""

    api: LoopbackApi
    port: int

    def stop(self) -> None:
        # A process that ends takes its open connections with it.
        self.api.always = Fault(hang_up=True)
        self.api.__exit__(None, None, None)

    def start(self) -> None:
        self.api = LoopbackApi(key=KEY, port=self.port)
        self.api.__enter__()


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    api = LoopbackApi(key=KEY)
    api.__enter__()
    running = Provider(api, int(api.url.rpartition(":")[2]))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def address(app: Homing, provider: Provider) -> Iterator[str]:
    for number in range(200):
        app.memory.remember("knowledge", f"第 {number} 条记录：航海日志写到了第 {number} 页。")
    app.documents.save("novel", "灯塔", "老周守了三十一年灯塔。\n\n岛上没有别的人。")
    app.engine.flush()
    app.documents.flush()
    app.models.config.ensure_default_embedding_model()
    app.models.config.create_provider("loopback", "openai", base_url=f"{provider.api.url}/v1", api_key=KEY)
    app.models.config.create_model("loopback", MODEL, model_config={"dimensions": 256})
    with live(create_app(app)) as address:
        yield address


@pytest.fixture
def answering(app: Homing, provider: Provider, address: str) -> Provider:
    """The provider, with everything embedded by it."""
    app.switch.make_default(app.models.find(MODEL).model)
    app.switch.run()
    return provider


def test_a_change_of_the_model_shows_its_progress(browser: Browser, address: str, provider: Provider) -> None:
    provider.api.always = Fault(delay=0.4)
    with visit(browser, address, "#/models", language="en-US") as page:
        row = page.locator(".models li", has_text=MODEL)
        row.get_by_role("button", name="Use this").click()
        page.locator("#switching [role=progressbar]").wait_for()
        page.locator(".space:not(.active)", has_text=MODEL).first.wait_for()
        page.get_by_text(f"{MODEL} now answers everything").wait_for()
        assert row.get_by_text("In use").is_visible()
        becomes(page.locator("#switching"), 0)
        active = page.locator(".space.active").all_inner_texts()
        assert active
        assert all(MODEL in one for one in active)
    provider.api.always = None


def test_a_model_that_dies_shows_a_notice_which_goes_when_it_is_back(
    browser: Browser, address: str, answering: Provider
) -> None:
    with visit(browser, address, "#/documents?q=孤零零的老人") as page:
        page.wait_for_selector(".hit, .nothing")
        notice = page.locator("#notice")
        assert notice.is_hidden()
        answering.stop()
        page.fill("#query", "守灯塔的人")
        notice.wait_for()
        assert "语义搜索暂时不可用" in notice.inner_text()
        assert "vector:" in notice.inner_text()
        assert "灯塔" in page.locator(".hit").first.inner_text()
        page.click("#language")
        assert "keyword results" in notice.inner_text()
        page.locator(".hit").first.click()
        assert "by words alone" in page.locator("#detail figcaption").inner_text()
        answering.start()
        notice.wait_for(state="hidden", timeout=60_000)
        page.get_by_text("Semantic search is back").wait_for()
        assert "meaning + words" in page.locator(".group header").inner_text()


def test_without_its_model_the_map_is_drawn_without_the_question(
    browser: Browser, address: str, answering: Provider
) -> None:
    with visit(browser, address, "#/map", language="en-US") as page:
        page.wait_for_selector(".map .point")
        answering.stop()
        page.fill("#query", "a question nobody asked before")
        page.locator("#notice").wait_for()
        assert page.locator(".map .point").count() > 100
        assert page.locator(".map .query").count() == 0
        answering.start()
        page.locator(".map .query").wait_for(timeout=60_000)
        assert page.locator("#notice").is_hidden()
