"""One entry in the configuration file of a client: put there, with everything else in the file left as it is."""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from homing.errors import ConfigError

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_SPACE = re.compile(r"\s*")


def read_json(text: str) -> Any:
    """What JSON says; comments and trailing commas are allowed, as editors do. Raises ValueError."""
    return json.loads(_plain(text)) if text.strip() else {}


def put_json(text: str, path: Sequence[str], value: object) -> str:
    """The text with `value` under these keys; comments, order and layout of the rest stay.

    Raises ValueError where the text is no JSON object, or one of the keys holds something else.
    """
    text = text if text.strip() else "{}\n"
    plain = _plain(text)
    json.loads(plain)
    unit = next(iter(re.findall(r'^([ \t]+)"', text, re.MULTILINE)), "  ")
    at = _after_space(plain, 0)
    for depth, key in enumerate(path, start=1):
        if plain[at] != "{":
            raise ValueError(f"{path[depth - 2] if depth > 1 else 'it'} is no object")
        members, closing = _members(plain, at)
        if key not in members:
            for inner in reversed(path[depth:]):
                value = {inner: value}
            member = f"\n{unit * depth}{json.dumps(key)}: {_dump(value, unit, depth)}\n{unit * (depth - 1)}"
            last = max((end for _, end in members.values()), default=at + 1)
            comma = "," if members and not _without_comments(text)[last:closing].lstrip().startswith(",") else ""
            return text[:last] + comma + text[last:closing].rstrip() + member + text[closing:]
        at, end = members[key]
    return text[:at] + _dump(value, unit, len(path)) + text[end:]


def put_toml(text: str, path: Sequence[str], value: Mapping[str, object]) -> str:
    """The text with a table of these strings and lists of strings; everything outside of that table stays."""
    # A JSON string, number, truth or list of them is one of TOML, too.
    rows = [f"{key} = {json.dumps(one, ensure_ascii=False)}\n" for key, one in value.items() if type(one) is not dict]
    table = [f"[{'.'.join(path)}]\n", *rows]
    lines = text.splitlines(keepends=True)
    named = re.compile(rf"\s*\[\s*{re.escape('.'.join(path))}\s*\]")
    start = next((number for number, line in enumerate(lines) if named.match(line)), None)
    if start is None:
        gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
        return text + gap + "".join(table)
    end = next((number for number in range(start + 1, len(lines)) if lines[number].startswith("[")), len(lines))
    while end > start + 1 and lines[end - 1].lstrip()[:1] in ("", "#"):
        end -= 1
    return "".join([*lines[:start], *table, *lines[end:]])


Entries = Mapping[tuple[str, ...], Callable[[Any], Any]]
"""What to put under which keys, each made from what stands there now, if anything."""


def holds(file: Path, language: str, entries: Entries) -> bool:
    """Whether a file says all of it already."""
    try:
        old, new = _edited(file, language, entries)
    except ConfigError:
        return False
    return old == new


def there(file: Path, language: str, path: Sequence[str]) -> Any:
    """What a file says at a path now; None where it says nothing there."""
    found = None

    def look(value: Any) -> Any:
        nonlocal found
        found = value
        return value

    holds(file, language, {tuple(path): look})
    return found


def edit(file: Path, language: str, entries: Entries) -> bool:
    """Put entries into a file that may not be there yet; returns whether it changed.

    The file is replaced whole or not at all, and only if nothing else in it changes. Raises ConfigError.
    """
    # What a link leads to is what changes: people keep such files elsewhere.
    file = file.resolve()
    old, new = _edited(file, language, entries)
    if old == new:
        return False
    try:
        _replace(file, new)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}; add the block by hand (--print)") from error
    return True


def _edited(file: Path, language: str, entries: Entries) -> tuple[str, str]:
    """The text of a file as it is, and as it should be."""
    try:
        old = file.read_bytes().decode("utf-8") if file.exists() else ""
        mark = "\ufeff" if old.startswith("\ufeff") else ""
        new = old.removeprefix(mark).replace("\r\n", "\n")
        parse: Callable[[str], Any] = tomllib.loads if language == "toml" else read_json
        wanted = parse(new)
        for path, make in entries.items():
            there = _under(wanted, path)
            value = make(there)
            if value != there:
                new = put_toml(new, path, value) if language == "toml" else put_json(new, path, value)
                _put(wanted, path, value)
        if parse(new) != wanted:
            raise ValueError("it is written in a way that cannot be edited safely")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} is left as it is: {error}; mend it, or add the block by hand (--print)") from error
    return old, mark + (new.replace("\n", "\r\n") if "\r\n" in old else new)


def _replace(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False) as draft:
        try:
            draft.write(text.encode("utf-8"))
            draft.flush()
            os.fsync(draft.fileno())
            if file.exists():
                shutil.copymode(file, draft.name)
            draft.close()
            os.replace(draft.name, file)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft.name)
            raise


def _under(tree: Any, path: Sequence[str]) -> Any:
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _put(tree: Any, path: Sequence[str], value: object) -> None:
    for key in path[:-1]:
        tree = tree.setdefault(key, {})
    tree[path[-1]] = value


def _plain(text: str) -> str:
    """JSON of the same length: comments and trailing commas are spaces."""
    return _blanked(_TRAILING_COMMA, _without_comments(text))


def _without_comments(text: str) -> str:
    return _blanked(_COMMENT, text)


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda found: found[1] or re.sub(r"\S", " ", found[0]), text)


def _members(text: str, at: int) -> tuple[dict[str, tuple[int, int]], int]:
    """Where the values of the object at this place begin and end, by key, and where it closes."""
    decode = json.JSONDecoder().raw_decode
    found: dict[str, tuple[int, int]] = {}
    at = _after_space(text, at + 1)
    while text[at] != "}":
        key, at = decode(text, at)
        start = _after_space(text, _after_space(text, at) + 1)
        _, end = decode(text, start)
        found[key] = (start, end)
        at = _after_space(text, end)
        if text[at] == ",":
            at = _after_space(text, at + 1)
    return found, at


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _dump(value: object, unit: str, depth: int) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", "\n" + unit * depth)
