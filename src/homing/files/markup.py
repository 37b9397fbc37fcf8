"""A page of (X)HTML as text with Markdown headings and lists."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from homing.files.libraries import library
from homing.text.decoding import NotText, decode_any

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(_HEADINGS) | {
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "dd",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "tbody",
    "thead",
    "tfoot",
    "tr",
    "ul",
}
# The small letters above a character (ruby) would stand in the middle of a word.
_LEFT_OUT = frozenset(
    {"head", "script", "style", "template", "svg", "math", "noscript", "rt", "rp", "iframe", "object"}
)
_SPACES = re.compile(r"[\s\u200b]+")
_PREAMBLE = re.compile(r"^\s*<\?xml[^>]*\?>")


def title_and_text(page: bytes) -> tuple[str, str]:
    """The first heading of a page, and its text; both empty where nothing can be read."""
    try:
        tree = _tree(page)
    except NotText:
        return "", ""
    if tree is None:
        return "", ""
    title = before = ""
    paragraphs: list[str] = []
    for tag, text in _paragraphs(tree):
        if tag in _HEADINGS:
            title = title or text
            text = f"{'#' * _HEADINGS[tag]} {text}"
        elif tag == "li":
            text = f"- {text}"
        # Items and rows stand together; everything else is a paragraph of its own.
        if tag in ("li", "tr") and tag == before:
            paragraphs[-1] += f"\n{text}"
        else:
            paragraphs.append(text)
        before = tag
    return title, "\n\n".join(paragraphs)


def _tree(page: bytes) -> Any:
    """Strictly as XML where it is, because `<title/>` swallows the page in HTML; else as HTML with its mistakes."""
    etree = library("lxml.etree")
    text = _PREAMBLE.sub("", decode_any(page).text).replace("\0", "")
    # A book speaks of &nbsp; without saying what it is; the characters themselves need no declaration.
    spelled = re.sub(r"&(?!(?:amp|lt|gt|quot|apos);)\w{1,32};", lambda found: html.unescape(found[0]), text)
    try:
        return etree.fromstring(spelled.encode(), etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError:
        return etree.fromstring(spelled.encode(), etree.HTMLParser(encoding="utf-8", no_network=True))


def _paragraphs(tree: Any) -> Iterator[tuple[str, str]]:
    """The stretches of text between the borders of blocks, with the tag of the block that each stands in."""
    held: list[str] = []
    tag = "p"

    def flush() -> Iterator[tuple[str, str]]:
        lines = [_SPACES.sub(" ", line).strip(" |") for line in "".join(held).split("\v")]
        held.clear()
        text = "\n".join(line for line in lines if line)
        if text:
            yield tag, text

    for event, name, text in _events(tree):
        if event == "text":
            held.append(text)
        elif name == "br":
            held.append("\v")
        elif name in ("td", "th"):
            held.append(" | " if event == "start" else "")
        elif name in _BLOCKS:
            yield from flush()
            tag = name if event == "start" else "p"
    yield from flush()


def _events(root: Any) -> Iterator[tuple[str, str, str]]:
    """Starts, ends and texts in order, without recursion: a page may nest as deeply as it likes."""
    waiting: list[tuple[str, Any]] = [("start", root)]
    while waiting:
        event, element = waiting.pop()
        if event == "text":
            yield "text", "", element
            continue
        # Comments and processing instructions have no name.
        name = element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""
        if event == "end":
            yield "end", name, ""
            continue
        if not name or name in _LEFT_OUT:
            continue
        yield "start", name, ""
        waiting.append(("end", element))
        for child in reversed(element):
            if child.tail:
                waiting.append(("text", child.tail))
            waiting.append(("start", child))
        if element.text:
            waiting.append(("text", element.text))
