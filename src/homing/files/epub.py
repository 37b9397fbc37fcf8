"""E-books: the chapters in the order in which they are read."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from homing.errors import FileDamaged, FileEncrypted
from homing.files.archive import Archive, damaged, refuse_entities
from homing.files.file_text import FileText, joined
from homing.files.libraries import library
from homing.files.limits import Counter, Limits
from homing.files.markup import title_and_text
from homing.progress import Progress

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_CHAPTERS = frozenset({"application/xhtml+xml", "text/html", "application/xml", "text/x-oeb1-document"})


def read_epub(content: bytes, filename: str, limits: Limits, progress: Progress) -> FileText:
    """Every chapter that the spine of the book names; navigation pages and pictures are left out."""
    library("lxml.etree")
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
        refuse_entities_of_page(page, path, filename)
        title, text = title_and_text(page)
        characters.add(len(text))
        chapters.append((title or str(number), text))
    text, parts = joined(chapters)
    notes = (f"{missing} chapters that the book names are not in it",) if missing else ()
    return FileText(text, "epub", filename, parts, notes)


def refuse_entities_of_page(page: bytes, path: str, filename: str) -> None:
    """Raises FileUnsafe as `refuse_entities` does; a page that is not XML is read as HTML, which declares nothing."""
    try:
        refuse_entities(page, path, filename)
    except FileDamaged:
        return


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
    etree = library("lxml.etree")
    with damaged(archive.filename):
        return etree.fromstring(content, etree.XMLParser(resolve_entities=False, no_network=True))


def _named(tree: Any, name: str) -> Iterator[Any]:
    yield from tree.iter(f"{{*}}{name}")


def _member(folder: str, reference: str) -> str:
    path = unquote(reference.partition("#")[0])
    return posixpath.normpath(posixpath.join(folder, path)).lstrip("/")
