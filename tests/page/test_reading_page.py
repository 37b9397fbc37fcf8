"""Markdown as people see it, and documents that open at the passage that was found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.files.made_files import make_pdf
from tests.page.chromium import visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DRAW = """async ([text, options]) => {
    const { markdown } = await import("/page/scripts/markdown.js");
    const place = document.createElement("div");
    place.append(...markdown(text, options));
    place.querySelectorAll("[data-at]").forEach(one => one.removeAttribute("data-at"));
    return place.getHTML();
}"""
LINE = """async ([text, words]) => {
    const { markdownLine } = await import("/page/scripts/markdown.js");
    const place = document.createElement("div");
    place.append(...markdownLine(text, { words }));
    return place.getHTML();
}"""
LINK = 'target="_blank" rel="noopener noreferrer nofollow"'

DRAWN = {
    "# 标题\n正文": "<h2>标题</h2><p>正文</p>",
    "## Two\n#### Four": "<h2>Two</h2><h3>Four</h3>",
    "#标签 is no heading": "<p>#标签 is no heading</p>",
    "a **粗** and *it* and ~~gone~~ `co*de*`": (
        "<p>a <strong>粗</strong> and <em>it</em> and <del>gone</del> <code>co*de*</code></p>"
    ),
    "2 * 3 * 4, snake_case_name, \\*not\\*": "<p>2 * 3 * 4, snake_case_name, *not*</p>",
    "- 一\n- two\n  - three\n\n1. a\n2. b": (
        "<ul><li>一</li><li>two<ul><li>three</li></ul></li></ul><ol><li>a</li><li>b</li></ol>"
    ),
    "- [x] done\n- [ ] 未做": "<ul><li>☑ done</li><li>☐ 未做</li></ul>",
    "> 引用\n> **two**": "<blockquote><p>引用\n<strong>two</strong></p></blockquote>",
    "```py\n<b>x</b>\n```\nafter": "<pre><code>&lt;b&gt;x&lt;/b&gt;\n</code></pre><p>after</p>",
    "| a | 乙 |\n|---|:-:|\n| 1 | *2* |": (
        "<table><thead><tr><th>a</th><th>乙</th></tr></thead>"
        "<tbody><tr><td>1</td><td><em>2</em></td></tr></tbody></table>"
    ),
    "a\n\n---\n\nb": "<p>a</p><hr><p>b</p>",
    "[链接](https://example.org/a?b=1)": f'<p><a href="https://example.org/a?b=1" {LINK}>链接</a></p>',
    "见https://example.org/x。完": f'<p>见<a href="https://example.org/x" {LINK}>https://example.org/x</a>。完</p>',
}
HARMLESS = {
    "[x](javascript:alert(1))": "<p>[x](javascript:alert(1))</p>",
    "[x](JaVaScRiPt:window.hacked=1)": "<p>x</p>",
    "[x](data:text/html,hi)": "<p>x</p>",
    "[x](/models)": "<p>x</p>",
    '<img src=x onerror="window.hacked=1">': '<p>&lt;img src=x onerror="window.hacked=1"&gt;</p>',
    "![图](https://example.org/p.png)": f'<p><a href="https://example.org/p.png" {LINK}>图</a></p>',
}


def test_markdown_is_drawn_and_nothing_in_it_is_ever_markup_or_a_script(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        for text, html in (DRAWN | HARMLESS).items():
            assert page.evaluate(DRAW, [text, {}]) == html, text
        assert page.evaluate("window.hacked") is None


def test_marks_stand_where_they_stand_in_the_source(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        text = "# 灯塔\n\n> 老周**守着**灯塔。\n\n- 海鸟 😀 bird"
        start = text.index("守着")
        marks = [[start, start + 6], [text.index("bird") + 1, len(text) + 1]]
        drawn = page.evaluate(DRAW, [text, {"marks": marks}])
        assert "<strong><mark>守着</mark></strong><mark>灯塔</mark>。" in drawn
        assert "海鸟 😀 <mark>bird</mark>" in drawn
        line = page.evaluate(LINE, ["## 撤销\n- use `git revert` [here](https://e.org)", ["revert"]])
        assert line == "撤销 use <code>git <mark>revert</mark></code> here"


@pytest.mark.parametrize(
    "text",
    ["*" * 30_000, "[" * 30_000, "> " * 10_000, "`" * 9_999 + "a" * 9_999, "- " * 10_000, "**a " * 9_000, "|" * 30_000],
    ids=["stars", "brackets", "quotes", "ticks", "items", "bold", "bars"],
)
def test_no_text_takes_long_to_draw(browser: Browser, address: str, text: str) -> None:
    # What took the square of its length would not be done before the browser gives up on the test.
    with visit(browser, address) as page:
        drawn = page.evaluate(DRAW, [text * 4, {}])
        assert page.evaluate("html => html.length", drawn) > 0


def seen_in(page: Page, outer: str, inner: str) -> bool:
    """Whether an element is within what is shown of another one that scrolls."""
    place = """([outer, inner]) => {
        const [pane, one] = [outer, inner].map(each => document.querySelector(each).getBoundingClientRect());
        return one.top >= pane.top && one.bottom <= pane.bottom && one.top < innerHeight;
    }"""
    return bool(page.evaluate(place, [outer, inner]))


def long_text(passage: str) -> str:
    before = "\n\n".join(f"第 {number} 段说的是别的事，和要找的没有关系。" for number in range(60))
    return f"# 航海日志\n\n{before}\n\n{passage}\n\n{before}"


@pytest.mark.parametrize(("language", "opens"), [("zh-CN", "打开"), ("en-US", "Open")])
def test_a_document_opens_at_the_passage_with_the_editor_beside_it(
    browser: Browser, address: str, language: str, opens: str
) -> None:
    passage = "船长把 **六分仪** 😀 锁进了铁柜。"
    with visit(browser, address, language=language) as page:
        page.request.put(f"{address}/documents/voyage/日志", data={"text": long_text(passage)})
        page.goto(f"{address}/#/documents?q=六分仪 铁柜")
        page.locator(".hit").first.click()
        page.locator("#detail").get_by_role("link", name=opens).click()
        page.locator(".reading mark").first.wait_for()
        assert "".join(page.locator(".reading mark").all_inner_texts()) == passage.replace("**", "")
        assert page.locator(".reading strong mark").inner_text() == "六分仪"
        assert seen_in(page, ".reading", ".reading mark")
        chosen = "one => one.value.slice(one.selectionStart, one.selectionEnd)"
        assert page.locator(".writing").evaluate(chosen) == passage
        page.locator(".writing").fill("只剩 *一句*。")
        page.locator(".reading em", has_text="一句").wait_for()


def test_pages_of_an_uploaded_file_are_told_where_it_is_found_and_read(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    file = tmp_path / "handbook.pdf"
    first, second = ["Welcome aboard, all hands on deck."] * 40, ["Ropes are coiled after every watch."] * 40
    file.write_bytes(make_pdf(first, [*second, "The barometer is calibrated every Monday."]))
    with visit(browser, address, "#/documents", language="en-US") as page:
        page.set_input_files("input[type=file]", str(file))
        page.locator("#upload select").select_option("uploads")
        page.locator("#upload button.main").click()
        page.locator("#upload .verdict.ok", has_text="1 file added").wait_for()
        page.get_by_role("button", name="Close").click()
        page.locator(".rows .chip", has_text="pdf").wait_for()
        page.fill("#query", "barometer calibrated")
        page.locator(".hit .place", has_text="uploads · page 2").first.click()
        page.locator("#detail a.button").click()
        page.locator(".reading mark", has_text="barometer").first.wait_for()
        assert page.locator(".page-mark").all_inner_texts() == ["page 1", "page 2"]
        # The same file again is named before it is replaced.
        page.goto(f"{address}/#/documents")
        page.locator(".rows").wait_for()
        page.set_input_files("input[type=file]", str(file))
        page.locator("#upload select").select_option("uploads")
        page.locator("#upload .warned", has_text="handbook.pdf").wait_for()
        page.keyboard.press("Escape")
        page.locator("#upload").wait_for(state="detached")


def test_a_skill_is_drawn_and_opens_where_it_was_found(browser: Browser, address: str) -> None:
    with visit(browser, address, "#/skills?q=write with care") as page:
        page.locator(".hit").first.click()
        page.locator("#detail a.button").click()
        page.locator("article.prose p", has_text="Write it with care.").wait_for()
