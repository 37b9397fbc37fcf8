"""E-books: the chapters in the order in which they are read, each a page of (X)HTML as Markdown."""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from homing.errors import FileDamaged, FileEncrypted
from homing.files.archive import Archive, damaged, refuse_entities
from homing.files.file_text import Counter, FileText, Limits, joined
from homing.progress import Progress
from homing.text.decoding import NotText, decode_any

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_CHAPTERS = frozenset({"application/xhtml+xml", "text/html", "application/xml", "text/x-oeb1-document"})

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_OTHER_BLOCKS = """
address article aside blockquote body dd div dl dt figcaption figure footer form header hr li main nav ol p pre section
table tbody thead tfoot tr ul
"""
_BLOCKS = frozenset(_HEADINGS).union(_OTHER_BLOCKS.split())
# The small letters above a character (ruby) would stand in the middle of a word.
_LEFT_OUT = frozenset(
    {"head", "script", "style", "template", "svg", "math", "noscript", "rt", "rp", "iframe", "object"}
)
_SPACES = re.compile(r"[\s\u200b]+")
_PREAMBLE = re.compile(r"^\s*<\?xml[^>]*\?>")


def read_epub(content: bytes, filename: str, limits: Limits, progress: Progress) -> FileText:
    """Every chapter that the spine of the book names; navigation pages and pictures are left out."""
    archive = Archive(content, filename, limits)
    locked = _locked(archive)
    chapters: list[tuple[str, str]] = []
    missing = 0
    characters = Counter(filename, "characters", limits.characters)
    spine = list(_spine(archive))
    for number, path in enumerate(spine, start=1):
        progress(number, len(spine))
        if path in locked:
            raise FileEncrypted(f"{filename} is protected (DRM) and cannot be read", details={"filename": filename})
        if path not in archive.names:
            missing += 1
            continue
        page = archive.read(path)
        # A page that is not XML is read as HTML, which declares nothing.
        with suppress(FileDamaged):
            refuse_entities(page, path, filename)
        title, text = title_and_text(page)
        characters.add(len(text))
        chapters.append((title or str(number), text))
    text, parts = joined(chapters)
    notes = (f"{missing} chapters that the book names are not in it",) if missing else ()
    return FileText(text, "epub", filename, parts, notes)


def _spine(archive: Archive) -> Iterator[str]:
    """The members that hold the chapters, in reading order."""
    container = _tree(archive, _CONTAINER)
    place = next((one.get("full-path") for one in _named(container, "rootfile") if one.get("full-path")), None)
    if place is None:
        raise FileDamaged(f"{archive.filename}: the container names no book")
    package = _tree(archive, place)
    manifest = {item.get("id"): item for item in _named(package, "item")}
    for reference in _named(package, "itemref"):
        item = manifest.get(reference.get("idref"))
        if item is None or item.get("media-type") not in _CHAPTERS or "nav" in (item.get("properties") or "").split():
            continue
        yield _member(posixpath.dirname(place), item.get("href") or "")


def _locked(archive: Archive) -> frozenset[str]:
    if _ENCRYPTION not in archive.names:
        return frozenset()
    listed = _named(_tree(archive, _ENCRYPTION), "CipherReference")
    return frozenset(_member("", one.get("URI") or "") for one in listed)


def _tree(archive: Archive, name: str) -> Any:
    if name not in archive.names:
        raise FileDamaged(
            f"{archive.filename}: {name} is missing; it is not a complete e-book", details={"missing": name}
        )
    content = archive.read(name)
    refuse_entities(content, name, archive.filename)
    from lxml import etree

    with damaged(archive.filename):
        return etree.fromstring(content, etree.XMLParser(resolve_entities=False, no_network=True))


def _named(tree: Any, name: str) -> Iterator[Any]:
    yield from tree.iter(f"{{*}}{name}")


def _member(folder: str, reference: str) -> str:
    path = unquote(reference.partition("#")[0])
    return posixpath.normpath(posixpath.join(folder, path)).lstrip("/")


def title_and_text(page: bytes) -> tuple[str, str]:
    """The first heading of a page, and its text; both empty where nothing can be read."""
    try:
        tree = _page_tree(page)
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


def _page_tree(page: bytes) -> Any:
    """Strictly as XML where it is, because `<title/>` swallows the page in HTML; else as HTML with its mistakes."""
    from lxml import etree

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
