"""What each view lets people do: edit and watch, upload, remember, light up a home, look at a map and at figures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.page.chromium import Held, becomes, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

VIEWS = ("all", "skills", "documents", "memory", "devices", "map", "models", "health", "evaluation", "guide")

CONTRAST = """() => {
    const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const bytes = (colour, under) => {
        canvas.clearRect(0, 0, 1, 1);
        if (under) { canvas.fillStyle = under; canvas.fillRect(0, 0, 1, 1); }
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return canvas.getImageData(0, 0, 1, 1).data;
    };
    const light = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const ground = element => {
        const layers = [];
        for (let one = element; one; one = one.parentElement) {
            const colour = getComputedStyle(one).backgroundColor;
            layers.push(colour);
            if (bytes(colour)[3] === 255) break;
        }
        return layers.reverse().reduce((under, colour) => `rgb(${[...bytes(colour, under)].slice(0, 3)})`, "white");
    };
    const bad = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const text = walk.currentNode, element = text.parentElement;
        const unread = "title, option, .unseen, [aria-hidden=true], :disabled, noscript";
        if (!text.data.trim() || element.closest(unread)) continue;
        if (!element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
        const style = getComputedStyle(element);
        const inSvg = element instanceof SVGElement;
        if (inSvg && element.matches(".knot + .place, .fusion .place")) continue;
        const under = ground(inSvg ? element.closest("svg").parentElement : element);
        const one = light(bytes(inSvg ? style.fill : style.color, under)), other = light(bytes(under));
        const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        if (ratio < 4.5) bad.push([ratio.toFixed(2), element.outerHTML.slice(0, 80), text.data.slice(0, 30)].join(" "));
    }
    return bad;
}"""

UNNAMED = """() => [...document.querySelectorAll("button, a, input, select, textarea, svg[role=img]")]
    .filter(one => one.checkVisibility() && !one.closest("[aria-hidden=true]"))
    .filter(one => !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length))
    .map(one => one.outerHTML.slice(0, 120))"""


def test_only_the_edited_paragraph_is_embedded_again(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/documents/draft/chapter") as page:
        page.fill(".writing", "第一段说的是春天。\n\n第二段说的是夏天。\n\n第三段说的是秋天。")
        page.keyboard.press("Control+s")
        becomes(page.locator(".paragraphs .done"), 3)
        page.fill(".writing", "第三段说的是秋天。\n\n第一段说的是春天。\n\n第二段说的是大海。")
        assert page.get_by_text("有未保存的改动").is_visible()
        page.get_by_role("button", name="保存").click()
        page.wait_for_selector(".paragraphs .pending")
        assert "大海" in page.locator(".paragraphs .pending").inner_text()
        assert page.locator(".paragraphs .moved").count() + page.locator(".paragraphs .unchanged").count() == 2
        page.wait_for_selector(".paragraphs .done")
        assert "大海" in page.locator(".paragraphs .done").inner_text()
        assert "重新计算 1 段" in page.locator(".of-documents > [role=status]").inner_text()
        page.fill(".writing", "第三段说的是秋天。\n\n第二段说的是大海。")
        page.get_by_role("button", name="保存").click()
        page.wait_for_selector(".paragraphs .removed")
        assert "春天" in page.locator(".paragraphs .removed").inner_text()


def test_nothing_can_be_written_before_the_stored_text_is_there(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/documents/late/chapter") as page:
        page.fill(".writing", "潮水退去以后的港口。")
        page.keyboard.press("Control+s")
        becomes(page.locator(".paragraphs .done"), 1)
        held = Held(page, "**/documents/late/chapter")
        page.reload()
        reading = held.get()
        assert not page.locator(".writing").is_editable()
        page.keyboard.press("Control+s")
        assert page.get_by_role("button", name="保存").is_disabled()
        reading.continue_()
        page.locator(".writing:not([readonly])").wait_for()
        assert page.input_value(".writing") == "潮水退去以后的港口。"
        assert held.waiting == []


def test_a_search_in_between_keeps_what_is_not_saved_yet(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/documents/late/poem") as page:
        page.fill(".writing", "月落乌啼霜满天。")
        page.fill("#query", "海鸟")
        page.wait_for_selector(".of-documents .hit")
        page.fill("#query", "")
        page.wait_for_selector(".writing")
        assert page.input_value(".writing") == "月落乌啼霜满天。"
        page.keyboard.press("Control+s")
        becomes(page.locator(".paragraphs .done"), 1)


def test_what_is_typed_while_a_text_is_being_saved_is_not_taken_for_saved(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/documents/late/letter") as page:
        page.fill(".writing", "第一句。")
        held = Held(page, "**/documents/late/letter")
        page.keyboard.press("Control+s")
        saving = held.get()
        page.fill(".writing", "第一句。第二句。")
        saving.continue_()
        becomes(page.locator(".paragraphs .done"), 1)
        assert page.get_by_text("有未保存的改动").is_visible()


def test_an_uploaded_file_becomes_a_document_that_is_found(browser: Browser, address: str, tmp_path: Path) -> None:
    file = tmp_path / "港口日记.md"
    file.write_bytes("# 港口\n\n潮水退去以后，码头上只剩下缆绳。".encode("gb18030"))
    with visit(browser, address, "#/documents") as page:
        page.wait_for_selector(".rows")
        upload(page, file, "novel")
        page.locator(".rows").get_by_text("港口日记", exact=True).wait_for()
        page.fill("#query", "缆绳")
        page.locator(".of-documents .hit", has_text="港口日记").locator("mark").first.wait_for()


def test_an_upload_replaces_nothing_that_is_there_under_its_name(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    for number, (name, text) in enumerate((("航海.md", "第一本。"), ("航海.txt", "第二本。"), ("航海.md", "第一本。"))):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / name).write_text(text, encoding="utf-8")
    with visit(browser, address, "#/documents") as page:
        page.wait_for_selector(".rows")
        for number, name in enumerate(("航海.md", "航海.txt", "航海.md")):
            upload(page, tmp_path / str(number) / name, "novel")
            becomes(page.locator(".rows strong").filter(has_text="航海"), 1 if number == 0 else 2)
        assert page.locator(".rows strong").filter(has_text="航海").all_inner_texts() == ["航海", "航海.txt"]
        where = f"{address}/documents/novel"
        kept = [page.request.get(f"{where}/{quote(name)}").json()["text"] for name in ("航海", "航海.txt")]
    assert kept == ["第一本。", "第二本。"]


@pytest.mark.parametrize(("language", "said"), [("en-US", "cannot be read"), ("zh-CN", "不支持这种文件")])
def test_a_file_that_cannot_be_read_is_refused_in_words(
    browser: Browser, address: str, tmp_path: Path, language: str, said: str
) -> None:
    file = tmp_path / "picture.png"
    file.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    with visit(browser, address, "#/documents", language=language, expected=("415",)) as page:
        page.wait_for_selector(".rows")
        page.set_input_files("input[type=file]", str(file))
        page.locator("#upload button.main").click()
        told = page.locator("#upload .failed").inner_text()
    assert said in told
    assert "UNSUPPORTED_FILE" in told


def upload(page: Page, file: Path, project: str) -> None:
    """Bring a file into a project, and see it end."""
    page.set_input_files("input[type=file]", str(file))
    page.locator("#upload select").select_option(project)
    page.locator("#upload button.main").click()
    page.locator("#upload .verdict.ok").wait_for()
    page.keyboard.press("Enter")
    page.locator("#upload").wait_for(state="detached")


def test_a_memory_is_kept_found_and_forgotten(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/memory", language="en-US") as page:
        page.get_by_label("Remember something").last.fill("The spare key hangs behind the blue door.")
        page.get_by_label("Kind").select_option("observation")
        page.get_by_role("button", name="Remember").click()
        entry = page.locator(".entries li", has_text="spare key")
        entry.wait_for()
        page.locator("#waiting").wait_for(state="hidden")
        page.fill("#query", "spare key")
        page.wait_for_selector(".of-memory .hit mark")
        page.fill("#query", "")
        entry.get_by_role("button", name="Forget").click()
        entry.get_by_role("button", name="Press again").click()
        entry.wait_for(state="detached")


def glow(device: Locator) -> str:
    """The colour that a device shines in, when it has changed to it."""
    shining = "one => Promise.all(one.getAnimations().map(each => each.finished)).then(() => getComputedStyle(one)"
    return str(device.locator(".glow").evaluate(f"{shining}.backgroundColor)"))


def test_lights_go_on_in_every_room_but_the_one_left_out(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/devices") as page:
        page.wait_for_selector(".floors")
        page.fill("#query", "打开除卧室以外的灯")
        page.wait_for_selector(".device.meant")
        lit = page.locator(".device.meant").evaluate_all("all => all.map(one => one.dataset.device).sort()")
        assert lit == ["light.kitchen", "light.living", "light.strip"]
        assert page.locator(".room.left-out").get_attribute("data-room") == "卧室"
        assert page.locator(".chip.except").text_content() == "除了 卧室"
        page.keyboard.press("Enter")
        page.wait_for_selector(".device.on")
        page.fill("#query", "关掉厨房灯")
        becomes(page.locator(".device.meant"), 1)
        # What is to go dark is not shown lit, though it is on until Enter.
        dark = page.locator(".device[data-device='light.kitchen']")
        assert dark.locator(".badge").inner_text() == "关"
        assert glow(dark) == glow(page.locator(".device[data-device='light.bedside']"))
        assert glow(dark) != glow(page.locator(".device[data-device='light.living']"))
        page.keyboard.press("Enter")
        becomes(page.locator(".device.on"), 2)


def test_a_question_back_can_be_answered_with_a_click(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/devices?q=打开灯") as page:
        page.wait_for_selector(".step.ask .chip")
        assert page.locator(".device.asked").count() > 1
        page.locator(".step.ask button.chip", has_text="床头灯").click()
        page.wait_for_selector(".device.meant")
        assert page.locator(".device.meant").get_attribute("data-device") == "light.bedside"


def test_what_a_complaint_offers_is_done_after_a_yes(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/devices?q=卧室太热了") as page:
        page.wait_for_selector(".step.ask")
        assert page.locator(".step .mood").inner_text() == "抱怨"
        assert page.locator(".step header p").inner_text() == "要调低卧室空调的温度吗？"
        assert page.locator(".device.meant").count() == 0
        page.get_by_role("button", name="好", exact=True).click()
        page.wait_for_selector(".step.act")
        assert page.locator(".device.meant").get_attribute("data-device") == "climate.bedroom"


def test_the_map_shows_vectors_by_source_and_the_question_among_them(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/map?q=写海鸟论文的女孩") as page:
        page.wait_for_selector(".map .query")
        for source in ("skills", "documents", "memory"):
            assert page.locator(f".map .point.of-{source}").count() >= 1
        assert page.locator(".map .to").count() == 5
        assert "海鸟" in page.locator(".near-list li").first.inner_text()
        page.get_by_role("button", name="记忆", exact=True).click()
        becomes(page.locator(".map .point.of-skills"), 0)
        assert page.locator(".legend li").all_inner_texts() == ["知识", "观察"]


NAMES_AND_NUMBERS = {"zh-CN": ("版本",), "en-US": ("versions",)}


@pytest.mark.parametrize(
    ("language", "search"), [("zh-CN", "搜索 · 中文，按意思"), ("en-US", "search · Chinese, by meaning")]
)
def test_health_shows_what_the_doctor_found_in_the_language_of_the_page(
    browser: Browser, address: str, language: str, search: str
) -> None:
    with visit(browser, address, "#/health", language=language) as page:
        page.wait_for_selector(".verdict")
        assert page.locator(".finding.fail").count() == 0
        found = dict(
            page.locator(".finding").evaluate_all(
                "all => all.map(one => [one.querySelector('strong').innerText, one.querySelector('p').innerText])"
            )
        )
    assert search in found
    assert set(NAMES_AND_NUMBERS[language]) <= set(found)
    for check, detail in found.items():
        if check not in NAMES_AND_NUMBERS[language]:
            assert bool(re.search("[\u4e00-\u9fff]", detail)) == (language == "zh-CN"), (check, detail)


def test_health_draws_what_waits_and_how_long_searches_took(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/all?q=灯塔", language="en-US") as page:
        page.wait_for_selector(".hit")
        waiting = [7]
        page.route("**/metrics", lambda route: route.fulfill(
            body=re.sub(r"(?m)^homing_pending_texts .*$", f"homing_pending_texts {waiting[-1]}", route.fetch().text())
        ))  # fmt: skip
        page.goto(f"{address}/#/health")
        queue, times = page.locator(".pair section").nth(0), page.locator(".pair section").nth(1)
        queue.get_by_text("7 are waiting").wait_for()
        waiting.append(0)
        queue.get_by_text("None now").wait_for()
        assert queue.locator("svg").get_attribute("aria-label") == (
            "Texts waiting for their vector: None now: everything saved is found by meaning."
        )
        assert queue.locator("text.name").first.text_content() == "7"
        assert sum(int(one) for one in times.locator("text.value").all_text_contents() if one.isdigit()) >= 1
        assert "since the server started" in times.inner_text()


def test_the_guide_opens_its_pages_and_the_api_says_what_it_takes(browser: Browser, address: str) -> None:
    with visit(browser, address, "docs", language="en-US") as page:
        page.get_by_role("link", name="MCP", exact=True).click()
        page.get_by_role("heading", name="MCP", exact=True).wait_for()
        page.goto(f"{address}/#/guide/search")
        page.locator(".prose img").first.wait_for()
        assert page.evaluate("() => document.querySelector('.prose img').decode().then(() => true)")
        page.goto(f"{address}/#/guide")
        page.get_by_role("link", name="HTTP API").click()
        page.get_by_text("POST /documents/{project}/search").click()
        operation = page.locator("details[open]")
        operation.locator(".command").wait_for()
        assert "/documents/PROJECT/search -H 'content-type: application/json'" in operation.inner_text()
        assert "query required" in operation.locator("tr", has_text="query").first.inner_text()
        assert operation.locator("h4", has_text="HitOut").count() == 1


def test_a_result_of_an_evaluation_is_drawn(browser: Browser, address: str, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(json.dumps(evaluation()), encoding="utf-8")
    with visit(browser, address, "#/evaluation", language="en-US") as page:
        page.wait_for_selector(".empty code")
        page.set_input_files("input[type=file]", str(file))
        page.wait_for_selector("svg.chart")
        assert page.locator(".chart .best title").text_content() == "hybrid 0.7/0.3 k=60: 0.9000"
        page.get_by_role("button", name="zh", exact=True).click()
        assert page.locator("tbody tr").count() == 3
        said, was = (float(page.locator(".reliability .dot").first.get_attribute(key) or 0) for key in ("cx", "cy"))
        assert (said, was) == (50 + 220 * 0.25, 244 - 220 * 0.2)
        names = page.locator(".reliability svg").evaluate_all("all => all.map(one => one.ariaLabel)")
        assert [name.partition(" ")[0] for name in names] == ["Confidence", "Score"]
        file.write_text('{"rows": [{"set": "<b>"}]}', encoding="utf-8")
        page.set_input_files("input[type=file]", str(file))
        assert "This is not a homing eval" in page.locator(".toast.bad").last.inner_text()


def evaluation() -> dict[str, Any]:
    """A result as `homing eval --json` writes it, small."""
    figures = {"recall_1": 0.5, "recall_10": 0.9, "ndcg_10": 0.7, "mrr": 0.6, "abstained": None, "kept": None}
    configurations = [("vector", 1.0, 0.0, 0.8), ("keyword", 0.0, 1.0, 0.6), ("hybrid 0.7/0.3 k=60", 0.7, 0.3, 0.9)]
    rows = [
        {
            "set": "questions",
            "model": "local/all-MiniLM-L6-v2-zh@384",
            "configuration": name,
            "vector_weight": vector,
            "keyword_weight": keyword,
            "language": language,
            "questions": 20,
            "recall_5": value,
            **figures,
        }
        for name, vector, keyword, value in configurations
        for language in ("all", "zh", "en")
    ]
    dots = [
        {"set": "questions", "model": rows[0]["model"], "kind": kind, "said": said, "was": was, "count": count}
        for kind in ("confidence", "score")
        for said, was, count in ((0.25, 0.2, 5), (0.85, 0.9, 15))
    ]
    models = [rows[0]["model"]]
    return {"format": 1, "id": "one", "models": models, "rows": rows, "latency": [], "reliability": dots}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_and_every_control_has_a_name(browser: Browser, address: str, scheme: str) -> None:
    with visit(browser, address, scheme=scheme) as page:
        for view in (*VIEWS, "all?q=打开灯塔的灯", "documents/novel/灯塔"):
            page.goto(f"{address}/#/{view}")
            page.wait_for_selector(f"main.view-{view.split('?')[0].split('/')[0]} > div > :not(.loading)")
            page.wait_for_timeout(250)
            if "?" in view:
                page.locator(".hit").first.click()
            assert page.evaluate(CONTRAST) == [], view
            assert page.evaluate(UNNAMED) == [], view


def test_who_wants_no_motion_gets_none(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        page.emulate_media(reduced_motion="reduce")
        page.wait_for_selector(".converging path")
        style = "getComputedStyle(document.querySelector('.converging path')).animationName"
        assert page.evaluate(style) == "none"
